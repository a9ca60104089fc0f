r"""Allocation over several scores at once: every reading of an item brings a vector of D scores.

Each score has a default sampler of its own, and all are told of every reading. After the warm-up the next
reading goes to

.. math:: \arg\max_i \max_d U_{id} / r_d \quad (\text{largest}), \qquad
          \arg\max_i \sum_d (U_{id} / r_d)^2 \quad (\text{sum})

where :math:`U_{id}` is what sampler d maximises, an error in points, and :math:`r_d` the range of score d.

All samplers give the same readings the same weights and hold out the same ones, and no score of a held-out
reading is looked at: the benchmark mean of every score is unbiased.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from evalbudget.design import Design, Reading, Request
from evalbudget.repeats.samplers import Auto
from evalbudget.repeats.samplers._base import _ONE
from evalbudget.repeats.samplers._heap import UrgencyHeap
from evalbudget.sampler import Sampler


class Chooser(Protocol):
    """Chooses items one by one, and is told all scores of each reading."""

    @property
    def sampler(self) -> Sampler:
        """What says how its readings may be averaged."""

    def ask(self) -> Request:
        """The next reading."""

    def tell(self, scores: Sequence[float]) -> None:
        """The scores of the reading asked last, shape (D,)."""


class OneNumber:
    """A sampler that is told one number of every reading.

    Args:
        sampler: what decides.
        weights: of the scores in that number, shape (D,).
    """

    def __init__(self, sampler: Sampler, weights: Sequence[float]) -> None:
        self.sampler = sampler
        self._weights = [(d, w) for d, w in enumerate(weights) if w]
        self._request: Request | None = None

    def ask(self) -> Request:
        """As the sampler asks."""
        (self._request,) = self.sampler.ask()
        return self._request

    def tell(self, scores: Sequence[float]) -> None:
        """The sampler is told the number they make."""
        assert self._request is not None
        value = sum(w * scores[d] for d, w in self._weights)
        self.sampler.tell((Reading(self._request, value),))


class JointScores:
    """One default sampler per score; see the module.

    Args:
        design: one model, one rater.
        ranges: r_d, shape (D,).
        total: sum over the scores instead of the largest.
        budget: readings that will be bought in all.
        seed: of the order among equals.
    """

    def __init__(
        self, design: Design, ranges: Sequence[float], *, total: bool = False, budget: int, seed: int = 0
    ) -> None:
        self._samplers = [_Attribute(design, budget=budget, seed=seed) for _ in ranges]
        self.sampler: Sampler = self._samplers[0]
        self._ranges = tuple(ranges)
        self._total = total
        self._n_items = design.n_items
        self._requests: list[Request] = []
        ranks: NDArray[np.int64] = np.random.default_rng(seed).permutation(design.n_items)
        self._heap = UrgencyHeap(ranks.tolist())
        self._warming = True

    def ask(self) -> Request:
        """In the warm-up as any of the samplers; then the most urgent item."""
        first = self._samplers[0]
        if self._warming and first.asked == first.minimum_readings:
            self._warming = False
            for sampler in self._samplers:
                sampler._end_warmup()
            self._heap.fill((i, self.urgency(i), first.n_asked(i)) for i in range(self._n_items))
        item = first._heap.peek() if self._warming else self._heap.peek()
        assert item is not None
        cell = first._cell(item)
        self._requests = [sampler.adopt(cell) for sampler in self._samplers]
        return self._requests[0]

    def tell(self, scores: Sequence[float]) -> None:
        """Every sampler is told its own."""
        for sampler, request, score in zip(self._samplers, self._requests, scores, strict=True):
            sampler.tell((Reading(request, score),))
        if not self._warming:
            item = self._requests[0].cell.item
            self._heap.update(item, self.urgency(item), self._samplers[0].n_asked(item))

    def urgency(self, item: int) -> float:
        """The largest standardised error of the item's scores, or the sum of their squares."""
        errors = [s.error(item) / r for s, r in zip(self._samplers, self._ranges, strict=True)]
        return sum(error * error for error in errors) if self._total else max(errors)


class _Attribute(Auto):
    """The default sampler of one score, which says how large it thinks an item's error is."""

    def error(self, item: int) -> float:
        """U_id, in points of the score; 0 where the warm-up showed no variance."""
        urgency = self._urgency(item)
        if self._kernel is not None:  # the fourth power, on a scale from -1 to 1
            return float(urgency**0.25 * self._kernel.range / (2.0 * _ONE))
        return max(urgency, 0.0)

    def _place(self, item: int) -> None:
        if self._warming:  # after it this sampler's own order is not used
            super()._place(item)
