"""Judge schedules: which judge scores which generation. One file per strategy."""

from evalbudget.judges.schedules._all import All
from evalbudget.judges.schedules._cyclic import Cyclic
from evalbudget.judges.schedules._dealer import Dealer
from evalbudget.judges.schedules._modulo import Modulo
from evalbudget.judges.schedules._panel import check_panel, parse_prices, per_judge
from evalbudget.judges.schedules._priced import Priced, priced_shares
from evalbudget.judges.schedules._random import Random
from evalbudget.judges.schedules._schedule import Assignment, JudgeSchedule
from evalbudget.judges.schedules._single import Single

__all__ = [
    "All",
    "Assignment",
    "Cyclic",
    "Dealer",
    "JudgeSchedule",
    "Modulo",
    "Priced",
    "Random",
    "Single",
    "check_panel",
    "parse_prices",
    "per_judge",
    "priced_shares",
]
