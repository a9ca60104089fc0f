"""The host's progress bar counts the samples it started with: tell it how many will run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any

from inspect_ai.util import display_counter

from evalbudget.hosts import Spending
from evalbudget.run import Bill
from evalbudget_inspect.host.bill import Account
from evalbudget_inspect.host.host_frames import held_by_caller
from evalbudget_inspect.host.private import TaskDisplay, TaskProfile, TaskResult, TaskSuccess


@dataclass(slots=True)
class Expected:
    """Of a run.

    Attributes:
        over: nothing more will run; from then on the host's own count is right.
    """

    over: bool = False


def expect(cells: int, expected: Expected) -> None:
    """Have the display of the task that is about to start count up to so many samples.

    The host takes the first epochs for all there is, and a budgeted run would be shown at 2000% of them. What
    its kinds of display hold is looked up by name; one that holds nothing of the kind stays as it is.

    Args:
        cells: samples times epochs that the budget pays for.
        expected: told when nothing more will run.
    """
    profile, display = held_by_caller(TaskProfile), held_by_caller(TaskDisplay)  # type: ignore[type-abstract]
    if profile is None or display is None or cells <= profile.steps:
        return
    profile.steps = cells  # the plain display and the log read it when the first sample starts
    _draw(display, cells)  # the others have read it already
    _count_up_to(display, profile, cells, expected)


def follow(bill: Callable[[], Bill | None]) -> None:
    """Have the display of the task that is about to start count up to what its budget is likely to buy.

    As :func:`expect`, where nobody knows how many samples that is: at any time, as many as would have spent
    the whole budget at the cost of those that ended.

    Args:
        bill: of the run; None before it is begun.
    """
    display: Any = held_by_caller(TaskDisplay)
    if display is None:
        return
    count = display.sample_complete

    def counted(complete: int, total: int) -> None:
        paid = bill()
        if paid is not None and complete and paid.spent > 0.0:
            _draw(display, max(complete, total, round(complete * paid.cap.amount / paid.spent)))
        count(complete, total)

    display.sample_complete = counted


def _draw(display: Any, total: int) -> None:
    """What its kinds of display take for all there is."""
    for name in ("p", "progress_display"):  # the rich one's, and the plain one's
        drawn: Any = getattr(display, name, None)
        if hasattr(drawn, "total"):
            drawn.total = total
    drawn = getattr(display, "progress_bar", None)  # the full screen's
    if drawn is not None:
        drawn.update(total=total)


def _count_up_to(display: Any, profile: TaskProfile, cells: int, expected: Expected) -> None:
    count, complete = display.sample_complete, display.complete
    last = profile.samples

    def counted(complete: int, total: int) -> None:
        nonlocal last
        last = total
        count(complete, total if expected.over else max(total, cells))

    def completed(result: TaskResult) -> None:
        if not isinstance(result, TaskSuccess):
            profile.samples = max(last, cells)  # "160 of 800 samples logged before interruption"
        complete(result)

    display.sample_complete, display.complete = counted, completed


_OFTEN = 1.0
"""Seconds between two lines of what is spent."""


def show_spending(account: Account, name: str) -> None:
    """Have the host's display say what is spent, promised and left, and how fast that goes.

    Args:
        account: that pays.
        name: of the run.
    """
    spending, said = Spending(account.bill, monotonic), 0.0

    def show() -> None:
        nonlocal said
        if monotonic() - said >= _OFTEN:
            said = monotonic()
            display_counter(name, str(spending))

    account.spends = show
