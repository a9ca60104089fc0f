"""What a process knows of a book: its cells as columns, and which of them may be asked now."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from evalbudget.book._breaker import Breaker
from evalbudget.book._given_up import GivenUp
from evalbudget.cells import CAME, CLOSED, OPEN, TAKEN, Cells, Planned
from evalbudget.design import Cell
from evalbudget.outage import DOWN_AFTER
from evalbudget.sampler import Kind, Sampler

_COLUMNS: dict[str, tuple[type, Any]] = {
    "model": (np.int64, 0),
    "item": (np.int64, 0),
    "epoch": (np.int64, 0),
    "rater": (np.int64, 0),
    "round": (np.int64, 0),
    "phase": (np.int64, 0),
    "state": (np.int8, OPEN),
    "value": (np.float64, np.nan),
    "tries": (np.int64, 0),
    "cost": (np.float64, 0.0),
    "propensity": (np.float64, np.nan),
    "call": (np.int64, -1),
}
_NOT_FAILED = (TAKEN, CAME)
"""States of a cell whose last try did not fail."""
_OURS = ("propensity", "call")
"""Of the columns, those that plans do not see."""


class Known:
    """The columns, in the order of the rounds, and the cells that wait.

    Args:
        sampler: whose rounds they are; it says who scores what, and what closes together.

    Attributes:
        notes: of every round.
        settled: how many tries came back.
        under_way: how many may still.
    """

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
        self._n = 0
        self._of: dict[str, Any] = {name: np.full(64, fill, kind) for name, (kind, fill) in _COLUMNS.items()}
        self._epochs: Counter[tuple[int, int]] = Counter()  # of each model and item
        self._number: dict[tuple[int, int], int] = {}  # the last cell of each
        # where rounds wait for all, failures must not decide by when they come: what failed is asked again,
        # and given up for good, once nothing is under way
        self._in_waves = sampler.waits_for_all
        self._given_up = GivenUp(sampler.design, sampler.closes_as)
        self._breaker = Breaker(self._has_failed, self._is_closed) if sampler.kind is Kind.MODELS else None
        self._later: list[int] = []  # of the next wave
        self._closed: frozenset[Cell] = frozenset()  # for now, where rounds do not wait for all
        self._parked: dict[Cell, list[int]] = {}  # what waits for something closed to open again
        self._back: list[int] = []  # a heap of those that came back without a score
        self._next = 0  # those from here on had no turn yet
        self.notes: list[Any] = []
        self.settled = self.under_way = 0

    def __len__(self) -> int:
        return self._n

    def cells(self) -> Cells:
        """All of them, as they are now; the columns must not be kept."""
        columns = {name: self._of[name][: self._n] for name in _COLUMNS if name not in _OURS}
        return Cells(**columns, given_up=self._closed, n_rounds=len(self.notes))

    def cell(self, number: int) -> Cell:
        """One of them."""
        return Cell(*(int(self._of[name][number]) for name in ("model", "item", "epoch", "rater")))

    def of(self, name: str, number: int) -> Any:
        """An entry of a column."""
        return self._of[name][number].item()

    def begin(self, planned: Planned) -> None:
        """A round was planned."""
        n = self._n + planned.item.size
        while n > self._of["item"].size:
            for name, (kind, fill) in _COLUMNS.items():
                self._of[name] = np.concatenate([self._of[name], np.full(self._of[name].size, fill, kind)])
        rows = slice(self._n, n)
        self._of["model"][rows], self._of["item"][rows] = planned.model, planned.item
        self._of["round"][rows], self._of["phase"][rows] = len(self.notes), planned.phase
        if planned.propensity is not None:
            self._of["propensity"][rows] = planned.propensity
        for number, where in enumerate(zip(planned.model.tolist(), planned.item.tolist(), strict=True)):
            epoch = self._epochs[where]
            self._epochs[where] += 1
            self._number[where] = self._n + number
            self._of["epoch"][self._n + number] = epoch
            self._of["rater"][self._n + number] = self._sampler.rater_of(where[1], epoch)
        self._n = n
        self.notes.append(planned.note)

    def set(self, number: int, state: int, value: float | None, tries: int, cost: float, call: int) -> None:
        """What is known of a cell now; of what happened in between only the end."""
        was = {name: self._of[name][number] for name in ("state", "tries")}
        had_failed = int(was["tries"] - (was["state"] in _NOT_FAILED))
        has_failed = tries - (state in _NOT_FAILED)
        cell = self.cell(number)
        for _ in range(has_failed - had_failed):
            self._given_up.failed(cell)
        if state == CAME != was["state"]:
            self._given_up.read(cell)
        if self._breaker is not None and tries and not was["tries"]:
            self._breaker.tried(cell.model, number, self.of("round", number))
        if self._breaker is not None and state in (CAME, CLOSED):
            self._release(self._breaker.settled(cell.model, number, answered=state == CAME))
        flew, flies = was["state"] == TAKEN, state == TAKEN
        self.settled += (tries - flies) - int(was["tries"] - flew)
        self.under_way += int(flies) - int(flew)
        self._of["state"][number], self._of["tries"][number], self._of["call"][number] = state, tries, call
        self._of["value"][number], self._of["cost"][number] = np.nan if value is None else value, cost
        if state == OPEN:
            heapq.heappush(self._later if self._in_waves else self._back, number)

    def take(self, may: Callable[[int], bool]) -> int | None:
        """The first cell that may be asked, in the order of the rounds; those that failed are before others.

        Args:
            may: whether a cell can be paid; where it cannot, it stays the first.
        """
        self._begin_wave()
        while self._back or self._next < self._n:
            number = self._back[0] if self._back else self._next
            # what failed comes back by the heap alone
            is_due = bool(self._back) or not self._of["tries"][number]
            if is_due and self._of["state"][number] == OPEN and not self._is_held(number):
                if not may(number):
                    return None
                self._drop(number)
                return number
            self._drop(number)
        return None

    def _is_held(self, number: int) -> bool:
        """Whether a cell must wait: it is given up for now, or its model seems to be down."""
        key = self._sampler.closes_as(self.cell(number))
        if key in self._closed:
            self._parked.setdefault(key, []).append(number)
            return True
        fresh = not self._of["tries"][number]
        return self._breaker is not None and self._breaker.holds(key.model, number, fresh=fresh)

    def hopeless(self) -> list[int]:
        """Cells to close for good, where rounds wait for all, once nothing is under way."""
        if not self._in_waves or self.under_way:
            return []
        keys = {(key.model, key.item) for key in self._given_up.now()}
        numbers = {number for key in keys if (number := self._number.get(key)) is not None}
        for model, last in {} if self._breaker is None else self._breaker.down().items():
            whole = np.flatnonzero(self._of["model"][: self._n] == model).tolist()
            numbers.update(whole if len(last) == DOWN_AFTER else last)
        return sorted(number for number in numbers if self._of["state"][number] == OPEN)

    def _is_closed(self, number: int) -> bool:
        return bool(self._of["state"][number] == CLOSED)

    def _has_failed(self, number: int) -> int:
        return int(self._of["tries"][number]) if self._of["state"][number] == OPEN else 0

    @property
    def waits(self) -> bool:
        """Whether there is a cell that may be asked."""
        return self.take(lambda number: False) is None and bool(self._back or self._next < self._n)

    def _drop(self, number: int) -> None:
        if self._back and self._back[0] == number:
            heapq.heappop(self._back)
        else:
            self._next = number + 1

    def _begin_wave(self) -> None:
        if self._in_waves:
            if not self.under_way:
                later, self._later = self._later, []
                self._release(later)
            return
        now = self._given_up.now()
        for key in self._closed - now:
            self._release(self._parked.pop(key, []))
        self._closed = now

    def _release(self, cells: list[int]) -> None:
        """They may be asked again."""
        for number in cells:
            heapq.heappush(self._back, number)
