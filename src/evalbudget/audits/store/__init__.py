"""Where an audit is kept: draws, texts and labels in a file or database that several people use at once."""

from evalbudget.audits.store._design import AuditDesign, Scale
from evalbudget.audits.store._forecast import AuditForecast
from evalbudget.audits.store._money import (
    AuditBudget,
    begin_bill,
    bill_beside,
    check_money,
    close_bill,
    database_of,
    open_bill,
    used_up,
)
from evalbudget.audits.store._record_types import (
    Answer,
    Attempt,
    Label,
    LabelKind,
    LabelTask,
    Opinion,
    Progress,
    Reply,
)
from evalbudget.audits.store._run import AuditRun, only_run
from evalbudget.audits.store._settings import AuditSettings
from evalbudget.audits.store._store import AuditStore
from evalbudget.audits.store._store_verdict import Stage, Standing, weigh

__all__ = [
    "Answer",
    "Attempt",
    "AuditBudget",
    "AuditDesign",
    "AuditForecast",
    "AuditRun",
    "AuditSettings",
    "AuditStore",
    "Label",
    "LabelKind",
    "LabelTask",
    "Opinion",
    "Progress",
    "Reply",
    "Scale",
    "Stage",
    "Standing",
    "begin_bill",
    "bill_beside",
    "check_money",
    "close_bill",
    "database_of",
    "only_run",
    "open_bill",
    "used_up",
    "weigh",
]
