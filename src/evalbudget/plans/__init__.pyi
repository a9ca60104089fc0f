from ._plan import plan as plan
from ._result import Plans as Plans
