"""Where an audit is kept: draws, texts and labels in one SQLite file, used by several people at once."""

from evalbudget.audit_store.design import AuditDesign
from evalbudget.audit_store.records import Answer, Label, LabelKind, LabelTask, Opinion, Progress
from evalbudget.audit_store.scale import Scale
from evalbudget.audit_store.store import AuditStore

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
