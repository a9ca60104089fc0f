"""What a run's book says of its calls, in the host's terms."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from evalbudget import Reading
from evalbudget.book import Called
from evalbudget.run import UNANSWERED
from evalbudget_lm_eval.host.answers import Asked


class Account:
    """Every call of all processes, once a run is over.

    Args:
        calls: in the order of asking.
        beside: what was paid for calls that brought nothing, by the reason.
        documents: task and id of each item.
        in_scores: calls are what the budget counts, so that what cost nothing was no call.
    """

    def __init__(
        self,
        calls: Sequence[Called],
        beside: Mapping[str, float],
        documents: Sequence[tuple[str, int]],
        *,
        in_scores: bool,
    ) -> None:
        self._calls, self._beside, self._documents = calls, beside, documents
        of = [(documents[called.reading.request.cell.item], called) for called in calls]
        self._asked = [(Asked(*document, called.attempt), called) for document, called in of]
        self._in_scores = in_scores

    @cached_property
    def scored(self) -> Mapping[Asked, Reading]:
        """Readings with a score, in the order of asking."""
        return {asked: c.reading for asked, c in self._asked if c.reading.value is not None}

    def scored_by(self, worker: str) -> set[Asked]:
        """Those of one process."""
        return {asked for asked, c in self._asked if c.worker == worker and c.reading.value is not None}

    @cached_property
    def returned(self) -> Sequence[Reading]:
        """Readings with and without a score; of what a kill cut off nobody knows."""
        return [called.reading for called in self._calls if not called.is_lost]

    @cached_property
    def failures(self) -> Mapping[str, int]:
        """How often each reason occurred to pay and read nothing, the most frequent first."""
        found: Counter[str] = Counter()
        for called in self._calls:
            reading = called.reading
            if reading.value is None and (reading.cost > 0.0 or not self._in_scores):
                found[UNANSWERED if called.is_lost else reading.error or "no score"] += 1
        for reason, calls in self._beside.items():
            found[reason] += math.ceil(calls - 1e-9)
        return dict(found.most_common())

    @cached_property
    def failed_of(self) -> Counter[tuple[str, int]]:
        """How often each document failed."""
        return Counter(
            self._documents[reading.request.cell.item] for reading in self.returned if reading.value is None
        )

    @cached_property
    def useful(self) -> float:
        """What readings with a score cost."""
        return math.fsum(reading.cost for reading in self.scored.values())

    @cached_property
    def phases(self) -> Mapping[Asked, float]:
        """In which each reading was bought; nan if there were none."""
        found = [(asked, called.reading.request.phase) for asked, called in self._asked]
        return {asked: math.nan if phase is None else phase for asked, phase in found}

    @cached_property
    def phase_sizes(self) -> tuple[float, ...]:
        """Readings per document in each phase, over all tasks; empty if there were none."""
        count = Counter(
            reading.request.phase for reading in self.scored.values() if reading.request.phase is not None
        )
        return tuple(count[phase] / len(self._documents) for phase in range(max(count, default=-1) + 1))

    @cached_property
    def processes(self) -> tuple[str, ...]:
        """That made calls, in the order in which they came."""
        return tuple(dict.fromkeys(called.worker for called in self._calls))
