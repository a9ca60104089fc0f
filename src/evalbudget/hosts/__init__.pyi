from ._account import Account as Account
from ._gate_baseline import BaselineArm as BaselineArm
from ._gate_baseline import baseline_of as baseline_of
from ._purchase import HostPurchase as HostPurchase
from ._race_forecast import forecast_of_race as forecast_of_race
from ._spending import Spending as Spending
