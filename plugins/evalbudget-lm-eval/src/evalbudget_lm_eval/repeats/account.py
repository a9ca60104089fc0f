"""What a run's book says of its calls, in the host's terms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from evalbudget import Reading
from evalbudget.book import Book
from evalbudget.hosts import Account as Calls
from evalbudget_lm_eval.host.answers import Asked


class Account(Calls):
    """Every call of all processes, once a run is over.

    Args:
        book: of the run.
        elsewhere: calls that brought nothing and are paid on a bill, by the reason.
        documents: task and id of each item.
        in_scores: calls are what the budget counts, so that what cost nothing was no call.
    """

    def __init__(
        self,
        book: Book,
        elsewhere: Mapping[str, int],
        documents: Sequence[tuple[str, int]],
        *,
        in_scores: bool,
    ) -> None:
        super().__init__(book, elsewhere, in_scores=in_scores)
        self._documents = documents

    def _asked(self, reading: Reading) -> Asked:
        cell = reading.request.cell
        return Asked(*self._documents[cell.item], cell.epoch)

    @cached_property
    def scored(self) -> Mapping[Asked, Reading]:
        """Readings with a score, in the order of asking."""
        return {self._asked(reading): reading for reading in self.readings if reading.value is not None}

    def scored_by(self, worker: str) -> set[Asked]:
        """Those of one process."""
        own = [
            called for called in self.calls if called.worker == worker and called.reading.value is not None
        ]
        return {Asked(*self._documents[one.reading.request.cell.item], one.attempt) for one in own}

    @cached_property
    def failed_of(self) -> Counter[tuple[str, int]]:
        """How often each document failed."""
        return Counter(self._asked(reading).document for reading in self.readings if reading.value is None)

    @cached_property
    def useful(self) -> float:
        """What readings with a score cost."""
        return math.fsum(reading.cost for reading in self.scored.values())

    @cached_property
    def phases(self) -> Mapping[Asked, float]:
        """In which each reading was bought; nan if there were none."""
        found = [(self._asked(reading), reading.request.phase) for reading in self.readings]
        return {asked: math.nan if phase is None else phase for asked, phase in found}

    @cached_property
    def phase_sizes(self) -> tuple[float, ...]:
        """Readings per document in each phase, over all tasks; empty if there were none."""
        count = Counter(
            reading.request.phase for reading in self.scored.values() if reading.request.phase is not None
        )
        return tuple(count[phase] / len(self._documents) for phase in range(max(count, default=-1) + 1))
