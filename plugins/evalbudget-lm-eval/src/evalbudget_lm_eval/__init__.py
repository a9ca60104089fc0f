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
    "BudgetedTask": "task",
    "CyclicJudgeFilter": "judges",
    "JUDGED_METRICS": "judging.rows",
    "budgeted": "wrapping",
    "judged": "judging.rows",
    "panel": "judging.rows",
    "process_judged": "judging.rows",
    "race": "racing.api",
}


def __getattr__(name: str) -> Any:
    # the host takes seconds to import: not for every command of evalbudget
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
