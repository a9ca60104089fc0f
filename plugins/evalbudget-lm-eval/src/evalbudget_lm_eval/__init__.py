"""evalbudget for lm-evaluation-harness."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalbudget_lm_eval.judges import CyclicJudgeFilter
    from evalbudget_lm_eval.judging.rows import JUDGED_METRICS, judged, panel, process_judged
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
]

# by name, since importing the host takes seconds and evalbudget's own commands do without it
_HOMES = {
    "BudgetedTask": "task",
    "CyclicJudgeFilter": "judges",
    "JUDGED_METRICS": "judging.rows",
    "budgeted": "wrapping",
    "judged": "judging.rows",
    "panel": "judging.rows",
    "process_judged": "judging.rows",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
