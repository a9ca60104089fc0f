"""Which items are given up, by what failed of each model so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from evalbudget.closing import answers_nothing, closed, fewest_failures
from evalbudget.design import Cell, Design


class GivenUp:
    """Counts what comes back; :meth:`now` is a function of the counts and of nothing else.

    Args:
        design: of what is asked.
        closes_as: the cell, at epoch 0, by which what closes together is named.
    """

    def __init__(self, design: Design, closes_as: Callable[[Cell], Cell]) -> None:
        self._design = design
        self._closes_as = closes_as
        self._reads: dict[Cell, int] = {}
        self._failures: dict[int, _Failures] = {}
        self._found: dict[int, frozenset[Cell]] = {}
        self._changed: set[int] = set()

    def read(self, cell: Cell) -> None:
        """A cell has a score."""
        key = self._closes_as(cell)
        self._reads[key] = self._reads.get(key, 0) + 1
        self._of(cell.model).read(key)

    def failed(self, cell: Cell) -> None:
        """A try of a cell brought none."""
        self._of(cell.model).failed(self._closes_as(cell), lambda key: self._reads.get(key, 0))

    def now(self) -> frozenset[Cell]:
        """What is given up."""
        for model in self._changed:
            failures = self._failures[model]
            found = self._everything(model) if failures.answers_nothing else failures.given_up()
            self._found[model] = frozenset(found)
        self._changed.clear()
        return frozenset().union(*self._found.values())

    def _of(self, model: int) -> _Failures:
        self._changed.add(model)
        if model not in self._failures:
            d = self._design
            keys = {self._closes_as(Cell(rater=rater)) for rater in range(d.n_raters)}
            self._failures[model] = _Failures(d.n_items * len(keys))
        return self._failures[model]

    def _everything(self, model: int) -> set[Cell]:
        d = self._design
        cells = (Cell(model, item, 0, rater) for item in range(d.n_items) for rater in range(d.n_raters))
        return {self._closes_as(cell) for cell in cells}


@dataclass(slots=True)
class _Failures:
    """Counts of one model, so that the rule need not look at all items, and what follows from them.

    Attributes:
        n_items: that are given up one by one, under keys of the sampler's.
        fails: of each item that failed.
        reads: of each item that failed, how often it was read.
        all_reads: of all items.
        all_fails: of all items.
        of_read: failures of items that were read.
        never_read: items that failed and were not read.
        suspects: items that failed so much more often than they were read that they may be given up.
    """

    n_items: int
    fails: dict[Cell, int] = field(default_factory=dict)
    reads: dict[Cell, int] = field(default_factory=dict)
    all_reads: int = 0
    all_fails: int = 0
    of_read: int = 0
    never_read: int = 0
    suspects: set[Cell] = field(default_factory=set)

    def failed(self, key: Cell, reads: Callable[[Cell], int]) -> None:
        """Count a failure of an item, which was read so often before it failed first."""
        if key not in self.fails:
            self.fails[key], self.reads[key] = 0, reads(key)
            self.never_read += not self.reads[key]
        self.fails[key] += 1
        self.all_fails += 1
        self.of_read += bool(self.reads[key])
        self._suspect(key)

    def read(self, key: Cell) -> None:
        """Count a reading of an item."""
        self.all_reads += 1
        if key not in self.fails:
            return
        if not self.reads[key]:
            self.never_read -= 1
            self.of_read += self.fails[key]
        self.reads[key] += 1
        self._suspect(key)

    def _suspect(self, key: Cell) -> None:
        lead = self.fails[key] - self.reads[key]
        (self.suspects.add if lead >= fewest_failures(self.n_items) else self.suspects.discard)(key)

    @property
    def answers_nothing(self) -> bool:
        """Whether all items are to be closed, those that were never asked too."""
        return answers_nothing(self.all_reads, self.all_fails, len(self.fails), self.n_items)

    def given_up(self) -> set[Cell]:
        """Items that the rule gives up, one by one."""
        if not self.suspects:
            return set()
        keys = sorted(self.suspects)
        fails, reads = (np.array([counts[key] for key in keys]) for counts in (self.fails, self.reads))
        # of the others an item that was never read counts as one failed call
        silent = self.never_read - int((reads == 0).sum())
        more_fails = self.of_read - int(fails[reads > 0].sum()) + silent
        found = closed(
            fails,
            fails + reads,
            more_items=self.n_items - len(keys),
            more_fails=more_fails,
            more_calls=more_fails + self.all_reads - int(reads.sum()),
        )
        return {key for key, given_up in zip(keys, found.tolist(), strict=True) if given_up}
