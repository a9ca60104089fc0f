"""Which models of a race seem to be down: a long round is not paid for one that answers nothing."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable

from evalbudget.outage import DOWN_AFTER

_TRIES = 3
"""Of each of a model's last cells before it is taken to be down."""
_FIRST = 16
"""Cells that a model may have unanswered while it has answered fewer."""


class Breaker:
    """Holds back the cells of a model whose last ones all failed, until one of these is answered.

    Args:
        has_failed: how often a cell failed that has no score and is not under way; 0 of others.
        is_closed: whether a cell is given up.
    """

    def __init__(self, has_failed: Callable[[int], int], is_closed: Callable[[int], bool]) -> None:
        self._has_failed = has_failed
        self._is_closed = is_closed
        self._round: dict[int, int] = {}  # in which a model was asked last
        self._asked: dict[int, list[int]] = {}  # its cells of that round that were handed out, in their order
        self._unsettled: dict[int, set[int]] = {}  # that were handed out
        self._answered: dict[int, int] = {}
        self._held: dict[int, list[int]] = {}

    def tried(self, model: int, cell: int, round_: int) -> None:
        """A cell of a round was handed out for the first time."""
        if round_ > self._round.get(model, -1):
            self._round[model], self._asked[model] = round_, []
        if round_ == self._round[model]:
            insort(self._asked[model], cell)
        self._unsettled.setdefault(model, set()).add(cell)

    def settled(self, model: int, cell: int, *, answered: bool) -> list[int]:
        """A cell has a score, or is given up; those that were held back because of the model."""
        self._answered[model] = self._answered.get(model, 0) + answered
        self._unsettled.get(model, set()).discard(cell)
        return self._held.pop(model, [])

    def holds(self, model: int, cell: int, *, fresh: bool) -> bool:
        """Whether a cell must wait for an answer of its model."""
        answered = self._answered.get(model, 0)
        many = fresh and len(self._unsettled.get(model, ())) >= max(_FIRST, answered)
        last = self._asked.get(model, [])[-DOWN_AFTER:]
        suspect = len(last) == DOWN_AFTER and cell not in last and min(map(self._has_failed, last)) > 0
        if many or suspect:
            self._held.setdefault(model, []).append(cell)
        return many or suspect

    def down(self) -> dict[int, list[int]]:
        """Models whose last cells failed often enough, with these; asked when nothing is under way."""
        found = {}
        for model, asked in self._asked.items():
            last = asked[-DOWN_AFTER:]
            times = [self._has_failed(cell) for cell in last]
            often = min(times) >= _TRIES and sum(times) >= _TRIES * DOWN_AFTER
            if often or all(map(self._is_closed, last)):
                found[model] = last
        return found
