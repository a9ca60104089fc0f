"""Where an audit is kept: draws, texts and labels in a file or database that several people use at once."""

from evalbudget.audits.store._design import AuditDesign, Scale
from evalbudget.audits.store._forecast import AuditForecast
from evalbudget.audits.store._importing import Imported, import_labels
from evalbudget.audits.store._labels import labeller
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
from evalbudget.audits.store._run import AuditRun, go_on, only_run, still_wanted
from evalbudget.audits.store._settings import AuditSettings
from evalbudget.audits.store._store import AuditStore, alone
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
    "Imported",
    "Label",
    "LabelKind",
    "LabelTask",
    "Opinion",
    "Progress",
    "Reply",
    "Scale",
    "Stage",
    "Standing",
    "alone",
    "begin_bill",
    "bill_beside",
    "check_money",
    "close_bill",
    "database_of",
    "go_on",
    "import_labels",
    "labeller",
    "only_run",
    "open_bill",
    "still_wanted",
    "used_up",
    "weigh",
]
