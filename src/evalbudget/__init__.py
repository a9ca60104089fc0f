"""evalbudget decides which evaluation score to buy next, and says what the bought scores prove."""

from importlib import import_module
from typing import TYPE_CHECKING

from evalbudget._version import __version__
from evalbudget.budget import Budget, Unit
from evalbudget.design import Cell, Design, Reading, Request
from evalbudget.errors import EvalbudgetError
from evalbudget.hooks._hookspecs import hookimpl
from evalbudget.sampler import Allocation, Sampler

if TYPE_CHECKING:
    from evalbudget.estimate import ConfidenceInterval, Estimate
    from evalbudget.frames import from_frame, read

__all__ = [
    "Allocation",
    "Budget",
    "Cell",
    "ConfidenceInterval",
    "Design",
    "Estimate",
    "EvalbudgetError",
    "Reading",
    "Request",
    "Sampler",
    "Unit",
    "__version__",
    "from_frame",
    "hookimpl",
    "read",
]


_LATER = {
    "ConfidenceInterval": "estimate",
    "Estimate": "estimate",
    "from_frame": "frames",
    "read": "frames",
}
"""What brings numpy, which takes longer than --help should, and where it is."""


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"evalbudget.{_LATER[name]}"), name)
