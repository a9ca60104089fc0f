"""evalbudget decides which evaluation score to buy next, and says what the bought scores prove."""

from evalbudget._version import __version__
from evalbudget.budget import Budget, Ledger, Unit
from evalbudget.design import Cell, Design, Reading, Request
from evalbudget.errors import EvalbudgetError
from evalbudget.estimate import ConfidenceInterval, Estimate
from evalbudget.hooks.hookspecs import hookimpl
from evalbudget.journal import Journal, resume
from evalbudget.sampler import Allocation, Sampler

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
