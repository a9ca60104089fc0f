"""What failed of one model so far, kept so that the rule of giving items up need not look at all items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from evalbudget.closing import answers_nothing, closed, fewest_failures
from evalbudget.design import Cell


@dataclass(slots=True)
class Failures:
    """Counts of one model, and :meth:`given_up`, a function of them.

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
        import numpy as np  # takes longer to import than samplers do

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
