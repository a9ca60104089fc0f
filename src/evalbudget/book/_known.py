"""What a process knows of a book: its cells as columns, and which of them may be asked now."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from evalbudget.book._waiting import OneByOne, Passes
from evalbudget.cells import CAME, OPEN, TAKEN, Cells, Planned
from evalbudget.design import Cell, Request
from evalbudget.sampler import Allocation, Sampler
from evalbudget.statistics._bounds import IntArray

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
"""Of the columns, those that plans do not see; the last says in which pass a cell came back last."""

ADOPTED = "chosen by somebody else"
"""The note of a round that the sampler did not plan."""


KEPT = ("state", "tries", "lost", "value", "cost", "call", "attempt", "passed")
"""Of a cell, in the book and in every copy of it."""


class Tried(NamedTuple):
    """What became of a cell so far, by column."""

    state: int
    tries: int
    lost: int
    cost: float
    call: int


def is_adopted(planned: Planned) -> bool:
    """Whether somebody else chose the cells of a round."""
    return isinstance(planned.note, str) and planned.note == ADOPTED


class Known:
    """The columns, in the order of the rounds, and the cells that wait.

    Args:
        sampler: whose rounds they are; it says who scores what, and what closes together.

    Attributes:
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

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler
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
            self._of["phase"].item(number) if self._sampler.allocation is Allocation.PHASED else None,
        )

    def tried(self, number: int) -> Tried:
        """What became of a cell so far."""
        of = self._of
        return Tried(
            *(of["state"].item(number), of["tries"].item(number), of["lost"].item(number)),
            *(of["cost"].item(number), of["call"].item(number)),
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
        takes_turns = self._sampler.design.n_raters > 1
        for number, where in enumerate(zip(planned.model.tolist(), planned.item.tolist(), strict=True)):
            epoch = self._epochs[where]
            self._epochs[where] += 1
            self._of["epoch"][self._n + number] = epoch
            if takes_turns:
                self._of["rater"][self._n + number] = self._sampler.rater_of(where[1], epoch)
        self.waiting.add(rows.start, n)
        self._n = n
        self.n_rounds += 1
        if not is_adopted(planned):
            self.n_planned += 1
            self.note = planned.note

    def _check(self, planned: Planned) -> None:
        d = self._sampler.design
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

    def change(self, number: int, new: Mapping[str, Any]) -> dict[str, Any]:
        """What is new of a cell; all that is kept of it now."""
        was, of = self.tried(number), self._of
        row: dict[str, Any] = {name: of[name].item(number) for name in KEPT}
        row |= new
        if row["state"] != CAME:
            row["value"] = None
        for name in (*new, "value"):
            of[name][number] = np.nan if row[name] is None else row[name]
        self._became(number, was, self.tried(number), row["attempt"])
        return row

    def set_all(self, numbers: Sequence[int], columns: Mapping[str, Sequence[Any]]) -> None:
        """What is known of several cells now, each of them once; of what happened in between only the end."""
        at = np.array(numbers, dtype=np.int64)
        was = map(Tried, *(self._of[name][at].tolist() for name in Tried._fields))
        for name, column in columns.items():
            self._of[name][at] = np.array(column, dtype=self._of[name].dtype)
        now = map(Tried, *(columns[name] for name in Tried._fields))
        for each in zip(numbers, was, now, columns["attempt"], strict=True):
            self._became(*each)

    def _became(self, number: int, was: Tried, now: Tried, attempt: int) -> None:
        """What is counted of a cell, and whether it waits."""
        where = self._of["model"].item(number), self._of["item"].item(number)
        self._attempts[where] = max(self._attempts[where], attempt + 1)
        flew, flies = was.state == TAKEN, now.state == TAKEN
        self.settled += (now.tries - flies) - (was.tries - flew)
        self.under_way += int(flies) - int(flew)
        failed = _failed(now) - _failed(was)
        self.waiting.changed(number, now.state, failed=failed, read=now.state == CAME != was.state)

    def next_attempt(self, number: int) -> int:
        """Number of the next call of a cell's model and item, from 0; lost and failed ones had theirs."""
        of = self._of
        if of["call"].item(number) < 0 <= (given_back := of["attempt"].item(number)):
            return int(given_back)
        return self._attempts[of["model"].item(number), of["item"].item(number)]


def _failed(tried: Tried) -> int:
    return int(tried.tries - tried.lost - (tried.state in (TAKEN, CAME)))
