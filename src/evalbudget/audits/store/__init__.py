"""Where an audit is kept: draws, texts and labels in one SQLite file, used by several people at once."""

from evalbudget.audits.store._design import AuditDesign
from evalbudget.audits.store._records import Answer, Label, LabelKind, LabelTask, Opinion, Progress
from evalbudget.audits.store._scale import Scale
from evalbudget.audits.store._store import AuditStore

__all__ = [
    "Answer",
    "AuditDesign",
    "AuditStore",
    "Label",
    "LabelKind",
    "LabelTask",
    "Opinion",
    "Progress",
    "Scale",
]
