"""Refusals of this process: lets a command that ran the host tell bad input from the host's own failures."""

from __future__ import annotations

from evalbudget.errors import EvalbudgetError

_refusals: list[EvalbudgetError] = []


def refused(error: EvalbudgetError) -> None:
    """Note a refusal."""
    _refusals.append(error)


def take_refusals() -> list[EvalbudgetError]:
    """All refusals noted since the last call."""
    taken = list(_refusals)
    _refusals.clear()
    return taken
