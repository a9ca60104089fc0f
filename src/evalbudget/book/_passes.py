"""Which cells of a pass may be asked now, where rounds are handed out pass by pass."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from evalbudget.cells import OPEN
from evalbudget.design import Cell

Columns = Mapping[str, Any]
"""Arrays, by the name of the column."""


class Left(NamedTuple):
    """For cells that wait.

    Attributes:
        amount: of the budget.
        cells: that may be handed out, whatever they cost; those that cost nothing do not count.
        has_answers: there may be some that cost nothing.
    """

    amount: float
    cells: float
    has_answers: bool


class Passes:
    """Cells of the pass that is under way, in its order, until each has come back in it.

    Args:
        of: the columns of all cells.
        is_withdrawn: whether a cell's model is asked nothing more.

    Attributes:
        given_up: nothing: cells are closed for good here.
    """

    given_up: frozenset[Cell] = frozenset()

    def __init__(self, of: Columns, is_withdrawn: Callable[[int], bool]) -> None:
        self._of, self._is_withdrawn = of, is_withdrawn
        self._cells: Sequence[int] = ()
        self._place: dict[int, int] = {}
        self._next = self._number = 0
        self._back: list[int] = []  # a heap of places of those whose call was lost
        self._aside: dict[int, float]  # places of those that wait and can be paid, and what they cost
        self._forget()

    def _forget(self) -> None:
        self._aside, self._aside_of = {}, dict[int, list[int]]()  # the latter by model, as heaps
        self._paid, self._n_paid = 0.0, 0  # of these
        self._end = 0  # places up to which they are
        self._looked = 0  # places up to which those that cost nothing are
        self._reopened: list[int] = []  # before these, since

    def add(self, begin: int, end: int) -> None:
        """Cells of a new round: a pass will bring them."""

    def withdraw(self) -> None:
        """A model is asked nothing more."""
        self._forget()

    def begin(self, ask: Sequence[int], number: int) -> None:
        """A pass was put together."""
        self._cells, self._number, self._next, self._back = ask, number, 0, []
        self._place = {cell: place for place, cell in enumerate(ask)}
        self._forget()

    def changed(self, number: int, state: int, *, failed: int, read: bool) -> None:
        """Something became of a cell."""
        place = self._place.get(number, -1)
        if state != OPEN:
            self._remove(place)
        elif place >= 0:
            self._reopened.append(place)
            if place < self._next:
                heapq.heappush(self._back, place)

    def first(self) -> int | None:
        """The cell that comes next."""
        while self._back or self._next < len(self._cells):
            number = self._cells[self._back[0] if self._back else self._next]
            if self._is_due(number):
                return number
            self._drop(number)
        return None

    def _drop(self, number: int) -> None:
        """It had its turn."""
        if self._back and self._cells[self._back[0]] == number:
            heapq.heappop(self._back)
        else:
            self._next += 1

    # by model

    def by_model(self, room: Callable[[int], int], cost: Callable[[int], float], left: Left) -> list[int]:
        """Cells that may be asked now, so many of each model.

        Cells are paid in the order of the pass: one that costs something is given only where all that come
        before it, of whichever model, can be paid as well.

        Args:
            room: how many cells of a model may be asked; those that cost nothing need none. Below 0: whatever
                they cost.
            cost: of a cell.
            left: for cells that wait.
        """
        self._put_aside(cost, left)
        found: list[int] = []
        for model, places in self._aside_of.items():
            free = room(model) if places else -1
            while free >= 0 and places:
                is_found = places[0] in found[-1:]  # one may stand there twice
                if not is_found and free == 0 < self._aside.get(places[0], 0.0):
                    break
                place = heapq.heappop(places)
                if place in self._aside and not is_found:
                    free -= self._aside[place] > 0.0
                    found.append(place)
        return [self._cells[place] for place in sorted(found)]

    def _put_aside(self, cost: Callable[[int], float], left: Left) -> None:
        """What is left goes to the first cells that wait, as far as it lasts."""
        for place in self._reopened:
            if self._is_due(self._cells[place]):
                most = cost(self._cells[place])
                if place < self._end or (place < self._looked and not most):
                    self._add(place, most)
        self._reopened.clear()
        while self._end < len(self._cells):
            if self._is_due(number := self._cells[self._end]):
                most = cost(number)
                if most and not (self._n_paid < left.cells and self._paid + most <= left.amount):
                    break
                self._add(self._end, most)
            self._end += 1
        while self._n_paid > max(0, left.cells) or (self._n_paid and self._paid > left.amount):
            self._end -= 1
            if self._aside.get(self._end):
                self._remove(self._end)
        if left.has_answers:
            self._put_answers_aside(cost)

    def _put_answers_aside(self, cost: Callable[[int], float]) -> None:
        """What costs nothing need not wait for what cannot be paid."""
        for place in range(max(self._looked, self._end), len(self._cells)):
            if self._is_due(self._cells[place]) and not cost(self._cells[place]):
                self._add(place, 0.0)
        self._looked = len(self._cells)

    def _add(self, place: int, most: float) -> None:
        if place in self._aside:
            return
        self._aside[place] = most
        self._n_paid += most > 0.0
        self._paid += most
        heapq.heappush(self._aside_of.setdefault(self._of["model"].item(self._cells[place]), []), place)

    def _remove(self, place: int) -> None:
        if (most := self._aside.pop(place, None)) is not None:
            self._n_paid -= most > 0.0
            self._paid = self._paid - most if self._n_paid else 0.0

    def _is_due(self, number: int) -> bool:
        """Whether it has yet to come back in this pass, and nobody has it."""
        is_due = self._of["state"].item(number) == OPEN and self._of["passed"].item(number) < self._number
        return is_due and not self._is_withdrawn(number)
