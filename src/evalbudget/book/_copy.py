"""A process's own copy of a book: its cells as columns, its numbers, and which cell comes next."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evalbudget.book._given_up import GivenUp
from evalbudget.book._passes import Columns, Passes
from evalbudget.cells import CAME, OPEN, TAKEN, Cells, Planned
from evalbudget.design import Cell, Request
from evalbudget.errors import StoreError
from evalbudget.sampler import Allocation, Sampler
from evalbudget.statistics._bounds import IntArray
from evalbudget.store import Address

NUMBERS = ("cap", "spent", "held", "rounds", "passes", "withdrawn", "calls", "changes", "stopped")
"""What of a book would have to be summed."""

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
    "lost": (np.int64, 0),
    "cost": (np.float64, 0.0),
    "propensity": (np.float64, np.nan),
    "call": (np.int64, -1),
    "attempt": (np.int64, -1),
    "passed": (np.int64, -1),
}
_OURS = ("propensity", "call", "attempt", "passed")
"""Of the columns, those that plans do not see."""

ADOPTED = "chosen by somebody else"
"""The note of a round that the sampler did not plan."""


class Kept(NamedTuple):
    """What became of a cell so far, by column; this is in the book and in every copy of it.

    Attributes:
        state: ``OPEN``, ``TAKEN``, ``CAME`` or ``CLOSED``.
        tries: how often it was handed out.
        lost: how many of these were lost.
        value: its score; None if it has none.
        cost: of its tries that came back.
        call: the last that it was handed out in.
        attempt: which call of its model and item that was.
        passed: the pass in which a try came back last.
    """

    state: int
    tries: int
    lost: int
    value: float | None
    cost: float
    call: int
    attempt: int
    passed: int

    @property
    def failed(self) -> int:
        """How many tries came back without a score."""
        return self.tries - self.lost - (self.state in (TAKEN, CAME))


def is_adopted(planned: Planned) -> bool:
    """Whether somebody else chose the cells of a round."""
    return isinstance(planned.note, str) and planned.note == ADOPTED


class Copy:
    """The columns, in the order of the rounds, read anew only as far as others changed them.

    Args:
        sampler: whose rounds they are; it says who scores what, and what closes together.
        where: the book is, for messages.

    Attributes:
        sampler: whose rounds they are.
        about: what would have to be summed.
        n_rounds: that were planned, or adopted.
        n_planned: of these, by the sampler.
        note: of the last that the sampler planned; None at first.
        withdrawn: requests in all when each model was withdrawn, shape (n_models,); -1 where it was not.
        why_withdrawn: why these were.
        n_passes: that rounds were handed out in, where they wait for all.
        settled: how many tries came back, or were lost.
        under_way: how many may still come.
        waiting: cells that may be asked now.
    """

    def __init__(self, sampler: Sampler, where: Address) -> None:
        self.sampler, self._where = sampler, where
        self.about: dict[str, Any] = {**dict.fromkeys(NUMBERS, 0), "stopped": None}
        self._n = 0
        self._of: dict[str, Any] = {name: np.full(64, fill, kind) for name, (kind, fill) in _COLUMNS.items()}
        self._epochs: Counter[tuple[int, int]] = Counter()  # of each model and item
        self._attempts: Counter[tuple[int, int]] = Counter()  # of each, how many numbers of calls are taken
        self.waiting: OneByOne | Passes
        self.waiting = (
            Passes(self._of, self._is_withdrawn)
            if sampler.waits_for_all
            else OneByOne(sampler, self._of, self.cell)
        )
        self.note: Any = None
        self.withdrawn: IntArray = np.full(sampler.design.n_models, -1)
        self.why_withdrawn: dict[int, str] = {}
        self.n_rounds = self.n_planned = self.n_passes = self.settled = self.under_way = 0

    def __len__(self) -> int:
        return self._n

    def cells(self) -> Cells:
        """All of them, as they are now; the columns must not be kept."""
        columns = {name: self._of[name][: self._n] for name in _COLUMNS if name not in _OURS}
        given_up = self.waiting.given_up
        return Cells(**columns, withdrawn=self.withdrawn, given_up=given_up, n_rounds=self.n_rounds)

    def cell(self, number: int) -> Cell:
        """One of them."""
        of = self._of
        model, item, epoch = of["model"].item(number), of["item"].item(number), of["epoch"].item(number)
        return Cell(model, item, epoch, of["rater"].item(number))

    def request(self, call: int, number: int) -> Request:
        """What a call asks."""
        drawn = self._of["propensity"].item(number)
        return Request(
            call,
            self.cell(number),
            None if math.isnan(drawn) else drawn,
            self._of["phase"].item(number) if self.sampler.allocation is Allocation.PHASED else None,
        )

    def kept(self, number: int) -> Kept:
        """What became of a cell so far."""
        of = self._of
        value = of["value"].item(number)
        return Kept(
            *(of["state"].item(number), of["tries"].item(number), of["lost"].item(number)),
            *(None if math.isnan(value) else value, of["cost"].item(number), of["call"].item(number)),
            *(of["attempt"].item(number), of["passed"].item(number)),
        )

    def of(self, name: str, number: int) -> Any:
        """An entry of a column."""
        return self._of[name].item(number)

    def begin(self, planned: Planned) -> None:
        """A round was planned.

        Raises:
            ValueError: it is not of this design.
        """
        self._check(planned)
        n = self._n + planned.item.size
        while n > self._of["item"].size:
            for name, (kind, fill) in _COLUMNS.items():
                self._of[name] = np.concatenate([self._of[name], np.full(self._of[name].size, fill, kind)])
        rows = slice(self._n, n)
        self._of["model"][rows], self._of["item"][rows] = planned.model, planned.item
        self._of["round"][rows], self._of["phase"][rows] = self.n_rounds, planned.phase
        if planned.propensity is not None:
            self._of["propensity"][rows] = planned.propensity
        takes_turns = self.sampler.design.n_raters > 1
        for number, where in enumerate(zip(planned.model.tolist(), planned.item.tolist(), strict=True)):
            epoch = self._epochs[where]
            self._epochs[where] += 1
            self._of["epoch"][self._n + number] = epoch
            if takes_turns:
                self._of["rater"][self._n + number] = self.sampler.rater_of(where[1], epoch)
        self.waiting.add(rows.start, n)
        self._n = n
        self.n_rounds += 1
        if not is_adopted(planned):
            self.n_planned += 1
            self.note = planned.note

    def _check(self, planned: Planned) -> None:
        d = self.sampler.design
        for part, size in ((planned.model, d.n_models), (planned.item, d.n_items)):
            fits = part.dtype.kind == "i" and part.ndim == 1 and part.shape == planned.item.shape
            if not fits or (part.size and not (part.min() >= 0 and part.max() < size)):
                raise ValueError(f"round {self.n_rounds} is of another design")

    def withdraw(self, model: int, asked: int, why: str) -> None:
        """A model is asked nothing more; of one that was withdrawn before only the first time counts.

        Raises:
            ValueError: there is no such model.
        """
        if not (0 <= model < self.withdrawn.size and asked >= 0):
            raise ValueError(f"model {model} was withdrawn after {asked} requests")
        if model not in self.why_withdrawn:
            self.withdrawn, self.why_withdrawn[model] = self.withdrawn.copy(), why
            self.withdrawn[model] = asked
            self.waiting.withdraw()

    def _is_withdrawn(self, number: int) -> bool:
        return self.of("model", number) in self.why_withdrawn

    def begin_pass(self, ask: IntArray) -> None:
        """These are handed out next.

        Raises:
            ValueError: there are no such cells.
        """
        if (
            ask.dtype.kind != "i"
            or ask.ndim != 1
            or (ask.size and not (ask.min() >= 0 and ask.max() < self._n))
        ):
            raise ValueError(f"pass {self.n_passes} has cells that are not there")
        self.n_passes += 1
        self.waiting.begin(ask.tolist(), self.n_passes)

    def change(self, number: int, new: Mapping[str, Any], was: Kept | None = None) -> Kept:
        """What is new of a cell, which was so until now; all that is kept of it from here on."""
        was, of = was or self.kept(number), self._of
        now = was._replace(**new)
        if now.state != CAME and now.value is not None:
            now = now._replace(value=None)
        for name in new:
            of[name][number] = new[name]
        of["value"][number] = math.nan if now.value is None else now.value
        self._became(number, was, now)
        return now

    def score(self, number: int, was: Kept, value: float | None, **new: Any) -> Kept:
        """A cell has this score, or none."""
        return self.change(number, {**new, "state": OPEN if value is None else CAME, "value": value}, was)

    def hand_out(self, number: int, call: int, attempt: int | None) -> Kept:
        """A cell is under way from now on, as this call of its model and item; None: the next."""
        attempt = self._next_attempt(number) if attempt is None else attempt
        was = self.kept(number)
        new = {"state": TAKEN, "call": call, "attempt": attempt, "tries": was.tries + 1}
        return self.change(number, new, was)

    def asked_next(self, number: int) -> Cell:
        """A cell, by the number of the next call of its model and item."""
        of = self._of
        model, item, attempt = of["model"].item(number), of["item"].item(number), self._next_attempt(number)
        return Cell(model, item, attempt, of["rater"].item(number))

    def set_all(self, numbers: Sequence[int], columns: Mapping[str, Sequence[Any]]) -> None:
        """What is known of several cells now, each of them once; of what happened in between only the end."""
        at = np.array(numbers, dtype=np.int64)
        was = map(Kept, *(self._of[name][at].tolist() for name in Kept._fields))
        for name, column in columns.items():
            self._of[name][at] = np.array(column, dtype=self._of[name].dtype)
        now = map(Kept, *(columns[name] for name in Kept._fields))
        for each in zip(numbers, was, now, strict=True):
            self._became(*each)

    def _became(self, number: int, was: Kept, now: Kept) -> None:
        """What is counted of a cell, and whether it waits."""
        where = self._of["model"].item(number), self._of["item"].item(number)
        self._attempts[where] = max(self._attempts[where], now.attempt + 1)
        flew, flies = was.state == TAKEN, now.state == TAKEN
        self.settled += (now.tries - flies) - (was.tries - flew)
        self.under_way += int(flies) - int(flew)
        read = now.state == CAME != was.state
        self.waiting.changed(number, now.state, failed=now.failed - was.failed, read=read)

    def _next_attempt(self, number: int) -> int:
        """From 0; lost and failed ones had theirs."""
        of = self._of
        if of["call"].item(number) < 0 <= (given_back := of["attempt"].item(number)):
            return int(given_back)
        return self._attempts[of["model"].item(number), of["item"].item(number)]

    def damaged(self, why: object) -> StoreError:
        """What is raised where something stands there that cannot be."""
        return StoreError(f"{self._where} is damaged: {why}; restore a copy, or begin a new one")


class OneByOne:
    """Cells in the order of the rounds; one without a score is asked again before any other.

    What is planned of an item that is given up waits for the day it opens again.

    Args:
        sampler: says what closes together.
        of: the columns of all cells.
        cell: of a number.

    Attributes:
        given_up: what is not asked for now.
    """

    def __init__(self, sampler: Sampler, of: Columns, cell: Callable[[int], Cell]) -> None:
        self._of, self._cell, self._closes_as = of, cell, sampler.closes_as
        self._failures = GivenUp(sampler.design, sampler.closes_as)
        self._has_failed = False
        self._uncounted: list[int] = []  # cells that were read, for what is given up, if anything fails
        self._parked: dict[Cell, list[int]] = {}  # what waits for something closed to open again
        self._back: list[int] = []  # a heap of those that came back without a score, or opened again
        self._next = self._n = 0  # those from here on had no turn yet
        self.given_up: frozenset[Cell] = frozenset()

    def add(self, begin: int, end: int) -> None:
        """Cells of a new round."""
        self._n = end

    def withdraw(self) -> None:
        """There is one model here."""

    def begin(self, ask: Sequence[int], number: int) -> None:
        """There are no passes here.

        Raises:
            ValueError: always.
        """
        raise ValueError("a pass where cells are handed out one by one")

    def changed(self, number: int, state: int, *, failed: int, read: bool) -> None:
        """Something became of a cell."""
        if failed > 0:
            self._has_failed = True
            self._count()
            for _ in range(failed):
                self._failures.failed(self._cell(number))
        if read:
            self._uncounted.append(number)
        if state == OPEN:
            heapq.heappush(self._back, number)

    def first(self) -> int | None:
        """The cell that comes next."""
        self._reopen()
        while self._back or self._next < self._n:
            number = self._back[0] if self._back else self._next
            # what was tried before comes back by the heap alone
            is_due = self._of["state"].item(number) == OPEN and (
                self._back or not self._of["tries"].item(number)
            )
            if is_due:
                key = self._closes_as(self._cell(number)) if self.given_up else None
                if key is None or key not in self.given_up:
                    return number
                self._parked.setdefault(key, []).append(number)
            self._drop(number)
        return None

    def _drop(self, number: int) -> None:
        """It had its turn."""
        if self._back and self._back[0] == number:
            heapq.heappop(self._back)
        else:
            self._next = number + 1

    def _count(self) -> None:
        """What was read."""
        for number in self._uncounted:
            self._failures.read(self._cell(number))
        self._uncounted.clear()

    def _reopen(self) -> None:
        if not self._has_failed:
            return
        self._count()
        now = self._failures.now()
        for key in self.given_up - now:
            for number in self._parked.pop(key, []):
                heapq.heappush(self._back, number)
        self.given_up = now
