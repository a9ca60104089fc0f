"""What a run's book says of its calls, in the host's terms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from evalbudget import Reading
from evalbudget.run import ABANDONED, UNANSWERED

if TYPE_CHECKING:
    from evalbudget.book import Called


class Account:
    """Every call of all processes.

    Args:
        calls: in the order of asking.
        beside: what was paid for calls that brought nothing, by the reason.
        in_scores: calls are what the budget counts, so that what cost nothing was no call.
    """

    def __init__(self, calls: Sequence[Called], beside: Mapping[str, float], *, in_scores: bool) -> None:
        self._calls, self._beside, self._in_scores = calls, beside, in_scores

    @cached_property
    def readings(self) -> Sequence[Reading]:
        """Of all that came back, with a score or without; a cell's epoch is the host's, counted from 0."""
        return [_in_host_terms(called) for called in self._calls if not called.is_lost]

    @cached_property
    def failures(self) -> dict[str, int]:
        """How often each reason occurred to pay and read nothing, the most frequent first."""
        found: Counter[str] = Counter()
        for called in self._calls:
            reading = called.reading
            was_made = reading.cost > 0.0 or (not self._in_scores and reading.error != ABANDONED)
            if reading.value is None and was_made:
                found[UNANSWERED if called.is_lost else reading.error or "no score"] += 1
        for reason, calls in self._beside.items():
            if times := math.ceil(calls - 1e-9):
                found[reason] += times
        return dict(found.most_common())

    @cached_property
    def processes(self) -> tuple[str, ...]:
        """That made calls, in the order in which they came, as far as they are known."""
        return tuple(dict.fromkeys(called.worker for called in self._calls if called.worker))


def _in_host_terms(called: Called) -> Reading:
    """Each call of an item has an epoch of its own."""
    request = called.reading.request
    cell = request.cell._replace(epoch=called.attempt)
    return replace(called.reading, request=replace(request, cell=cell))
