"""evalbudget for lm-evaluation-harness."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalbudget_lm_eval.judges.filter import CyclicJudgeFilter
    from evalbudget_lm_eval.judges.rows import JUDGED_METRICS, judged, panel, process_judged
    from evalbudget_lm_eval.races.api import race
    from evalbudget_lm_eval.repeats.budgeted import budgeted
    from evalbudget_lm_eval.repeats.task import BudgetedTask

__all__ = [
    "JUDGED_METRICS",
    "BudgetedTask",
    "CyclicJudgeFilter",
    "budgeted",
    "judged",
    "panel",
    "process_judged",
    "race",
]

_HOME = {
    "BudgetedTask": "evalbudget_lm_eval.repeats.task",
    "CyclicJudgeFilter": "evalbudget_lm_eval.judges.filter",
    "JUDGED_METRICS": "evalbudget_lm_eval.judges.rows",
    "budgeted": "evalbudget_lm_eval.repeats.budgeted",
    "judged": "evalbudget_lm_eval.judges.rows",
    "panel": "evalbudget_lm_eval.judges.rows",
    "process_judged": "evalbudget_lm_eval.judges.rows",
    "race": "evalbudget_lm_eval.races.api",
}


def __getattr__(name: str) -> Any:
    # the host takes seconds to import: not for every command of evalbudget
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
