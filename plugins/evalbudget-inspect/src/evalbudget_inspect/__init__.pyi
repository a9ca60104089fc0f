from .judges.cyclic_judge import cyclic_judge as cyclic_judge
from .judges.cyclic_judge import rotate as rotate
from .races.leaderboard import Leaderboard as Leaderboard
from .races.leaderboard import leaderboard as leaderboard
from .races.task import gate as gate
from .races.task import race as race
from .repeats.task import budgeted as budgeted
