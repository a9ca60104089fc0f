"""evalbudget decides which evaluation score to buy next, and says what the bought scores prove."""

from typing import TYPE_CHECKING

from evalbudget._version import __version__
from evalbudget.budget import Budget, Ledger, Unit
from evalbudget.design import Cell, Design, Reading, Request
from evalbudget.errors import EvalbudgetError
from evalbudget.hooks._hookspecs import hookimpl
from evalbudget.journal import Journal, resume
from evalbudget.sampler import Allocation, Sampler

if TYPE_CHECKING:
    from evalbudget.estimate import ConfidenceInterval, Estimate

__all__ = [
    "Allocation",
    "Budget",
    "Cell",
    "ConfidenceInterval",
    "Design",
    "Estimate",
    "EvalbudgetError",
    "Journal",
    "Ledger",
    "Reading",
    "Request",
    "Sampler",
    "Unit",
    "__version__",
    "hookimpl",
    "resume",
]


def __getattr__(name: str) -> object:
    if name not in ("ConfidenceInterval", "Estimate"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from evalbudget import estimate  # brings numpy, which takes longer than --help should

    return getattr(estimate, name)
