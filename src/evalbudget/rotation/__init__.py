"""Judge schedules: which judge scores which generation. One file per strategy."""

from evalbudget.rotation.cyclic import Cyclic
from evalbudget.rotation.dealer import Dealer
from evalbudget.rotation.every import All
from evalbudget.rotation.independent import Random
from evalbudget.rotation.panel import check_panel
from evalbudget.rotation.priced import Priced, priced_shares
from evalbudget.rotation.schedule import Assignment, JudgeSchedule
from evalbudget.rotation.single import Single

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
