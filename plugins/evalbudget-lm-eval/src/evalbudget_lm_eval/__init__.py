"""evalbudget for lm-evaluation-harness."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalbudget_lm_eval.judges import CyclicJudgeFilter
    from evalbudget_lm_eval.judging.rows import JUDGED_METRICS, judged, panel, process_judged
    from evalbudget_lm_eval.racing.api import race
    from evalbudget_lm_eval.task import BudgetedTask
    from evalbudget_lm_eval.wrapping import budgeted

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
    "BudgetedTask": "evalbudget_lm_eval.task",
    "CyclicJudgeFilter": "evalbudget_lm_eval.judges",
    "JUDGED_METRICS": "evalbudget_lm_eval.judging.rows",
    "budgeted": "evalbudget_lm_eval.wrapping",
    "judged": "evalbudget_lm_eval.judging.rows",
    "panel": "evalbudget_lm_eval.judging.rows",
    "process_judged": "evalbudget_lm_eval.judging.rows",
    "race": "evalbudget_lm_eval.racing.api",
}


def __getattr__(name: str) -> Any:
    # the host takes seconds to import: not for every command of evalbudget
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
