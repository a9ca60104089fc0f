"""Judge schedules: which judge scores which generation. One file per strategy."""

from evalbudget.judges.schedules.cyclic import Cyclic
from evalbudget.judges.schedules.dealer import Dealer
from evalbudget.judges.schedules.every import All
from evalbudget.judges.schedules.independent import Random
from evalbudget.judges.schedules.panel import check_panel
from evalbudget.judges.schedules.priced import Priced, priced_shares
from evalbudget.judges.schedules.schedule import Assignment, JudgeSchedule
from evalbudget.judges.schedules.single import Single

__all__ = [
    "All",
    "Assignment",
    "Cyclic",
    "Dealer",
    "JudgeSchedule",
    "Priced",
    "Random",
    "Single",
    "check_panel",
    "priced_shares",
]
