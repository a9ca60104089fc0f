"""What evalbudget looks for: one file per question."""

from evalbudget.doctor._check import Check
from evalbudget.doctor.checks._drift import Drift
from evalbudget.doctor.checks._gap import Gap
from evalbudget.doctor.checks._history import History
from evalbudget.doctor.checks._items_in_common import ItemsInCommon
from evalbudget.doctor.checks._judges import Judges
from evalbudget.doctor.checks._repeats import Repeats
from evalbudget.doctor.checks._savings import AuditSaving, RaceSaving, RepeatSaving, RotationSaving
from evalbudget.doctor.checks._sources import MissingScores, RaceVerdict, SourcesCheck

CHECKS: tuple[type[Check], ...] = (
    RaceVerdict,
    MissingScores,
    SourcesCheck,
    ItemsInCommon,
    Gap,
    Repeats,
    Judges,
    Drift,
    History,
    RepeatSaving,
    RotationSaving,
    RaceSaving,
    AuditSaving,
)

__all__ = ["CHECKS"]
