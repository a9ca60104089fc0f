"""What all repeats samplers share: warm-up, cross-fit halves, exact sums, failures, the heap."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from evalbudget.design import Cell, Design
from evalbudget.errors import InvalidInputError
from evalbudget.sampler import Allocation, Eligible, Option, Sampler
from evalbudget.samplers._heap import UrgencyHeap

# Scores are summed as integer multiples of 2^-50: integer sums do not depend on the order of completion.
_ONE = float(2**50)


class RepeatSampler(Sampler):
    """Asks items of one model again and again; an author writes :meth:`_urgency`.

    Every item is read ``warmup`` times first. Then the most urgent item is asked next, counting requests in
    flight as readings to come.

    With ``cross_fit`` every item has two arms, half A (even epochs) and half B (odd epochs). Readings go to A
    and B in turn, and the urgency of an arm may look at :meth:`evidence` of its item's *other* half only, so
    that each half's mean is unbiased.

    Args:
        design: one model, one rater, any number of items.
        warmup: readings of each item before any is preferred, at least 1 (2 with ``cross_fit``).
        cross_fit: count each half out by the other half's scores.
        seed: of the order among equals.
        max_failures: see Sampler.
        options: see Sampler.

    Raises:
        InvalidInputError: several models or raters, or a warm-up too short.
    """

    def __init__(
        self,
        design: Design,
        *,
        warmup: int = 1,
        cross_fit: bool = False,
        seed: int = 0,
        max_failures: int = 3,
        options: Mapping[str, Option] = MappingProxyType({}),
    ) -> None:
        super().__init__(
            design, seed=seed, max_failures=max_failures, options={**options, "warmup": warmup}
        )
        if design.n_models != 1 or design.n_raters != 1:
            raise InvalidInputError(
                f"{self.name} allocates repeats over the items of one model and one rater; got {self._shape()}. "
                "Use one sampler per model and rater"
            )
        halves = 2 if cross_fit else 1
        if warmup < halves:
            raise InvalidInputError(f"warmup is {warmup}; {self.name} needs at least {halves}")
        self.warmup = warmup
        self.fixed_repeats = warmup
        self._halves = halves
        n_arms = design.n_items * halves
        self._need = [(warmup - half + halves - 1) // halves for half in range(halves)]
        self._active = [0] * n_arms  # asked and not failed
        self._epochs = [0] * n_arms  # next epoch of the arm
        self._n = [0] * n_arms
        self._sum = [0] * n_arms
        self._sum_sq = [0] * n_arms
        self._open = [True] * n_arms
        self._n_open = n_arms
        self._cold = n_arms  # open arms with fewer readings than the warm-up needs
        self._warming = True
        self._turn = 0
        order: list[int] = np.random.default_rng(seed).permutation(design.n_items).tolist()
        rank = [0] * n_arms
        for position, item in enumerate(order):
            for half in range(halves):
                rank[item * halves + half] = position * halves + half
        self._heaps = [UrgencyHeap(rank) for _ in range(halves)]
        for half, heap in enumerate(self._heaps):
            heap.fill(range(half, n_arms, halves), lambda arm: -float(self._active[arm]))

    @property
    def minimum_readings(self) -> int:
        """The smallest budget that lets this sampler decide anything."""
        return self.design.n_items * self.warmup

    def counts(self) -> tuple[int, ...]:
        """Readings per item so far, failed ones not counted."""
        h = self._halves
        return tuple(sum(self._n[i * h : (i + 1) * h]) for i in range(self.design.n_items))

    # what an author writes

    @abstractmethod
    def _urgency(self, arm: int) -> float:
        """How much the arm's next reading is wanted after the warm-up; larger first."""

    def _warmed_up(self) -> None:
        """Called once, when every item has its warm-up readings: fix what is learned from the pool."""

    # what an author may look at

    def _count(self, arm: int) -> int:
        """Readings of the arm, those in flight included."""
        return self._active[arm]

    def evidence(self, arm: int) -> int:
        """The arm whose scores may decide how often ``arm`` is asked."""
        return arm ^ 1 if self._halves == 2 else arm

    def _read(self, arm: int) -> int:
        """Readings of the arm that came back."""
        return self._n[arm]

    def _sum_of_squares(self, arm: int) -> float:
        """sum_j (x_j - mean)^2 of the arm's readings, independent of their order."""
        n = self._n[arm]
        if n < 2:
            return 0.0
        total = self._sum[arm]
        return (n * self._sum_sq[arm] - total * total) / n / (_ONE * _ONE)

    def _arms(self, half: int = 0) -> range:
        return range(half, len(self._n), self._halves)

    # Sampler

    def _next(self, eligible: Eligible | None) -> Cell | None:
        allowed = None if eligible is None else lambda arm: eligible(self._cell(arm))
        for offset in range(self._halves):
            arm = self._heaps[(self._turn + offset) % self._halves].peek(allowed)
            if arm is not None:
                return self._cell(arm)
        if self._n_open == 0 and not self._pending:
            self.stop_reason = "every item closed after repeated failures"
        return None

    def _cell(self, arm: int) -> Cell:
        item, half = divmod(arm, self._halves)
        return Cell(item=item, epoch=self._epochs[arm] * self._halves + half)

    def _arm(self, cell: Cell) -> int:
        return cell.item * self._halves + cell.epoch % self._halves

    def _asked(self, cell: Cell) -> None:
        arm = self._arm(cell)
        self._epochs[arm] = max(self._epochs[arm], cell.epoch // self._halves + 1)
        self._active[arm] += 1
        self._turn = (arm % self._halves + 1) % self._halves
        self._place(arm)

    def _learn(self, cell: Cell, value: float) -> None:
        arm = self._arm(cell)
        units = int(value * _ONE)
        self._n[arm] += 1
        self._sum[arm] += units
        self._sum_sq[arm] += units * units
        if not self._warming:
            self._place(self.evidence(arm))  # the arm whose urgency rests on these scores
        elif self._n[arm] == self._need[arm % self._halves] and self._open[arm]:
            self._cold -= 1
            if self._cold == 0:
                self._finish_warmup()

    def _failed(self, cell: Cell) -> None:
        arm = self._arm(cell)
        self._active[arm] -= 1
        self._place(arm)

    def _reads(self, key: Cell) -> int:
        first = key.item * self._halves
        return sum(self._n[first : first + self._halves])

    def _set_open(self, cell: Cell, is_open: bool) -> None:
        for half in range(self._halves):
            arm = cell.item * self._halves + half
            self._open[arm] = is_open
            self._n_open += 1 if is_open else -1
            if self._n[arm] < self._need[half]:
                self._cold += 1 if is_open else -1
            self._place(arm)
        if self._warming and self._cold == 0:
            self._finish_warmup()

    def _place(self, arm: int) -> None:
        """Put the arm where it belongs: in the heap at its urgency, or out of it."""
        heap = self._heaps[arm % self._halves]
        if not self._open[arm]:
            heap.remove(arm)
        elif not self._warming:
            heap.update(arm, self._priority(arm))
        elif self._active[arm] < self._need[arm % self._halves]:
            heap.update(arm, -float(self._active[arm]))
        else:
            heap.remove(arm)

    def _priority(self, arm: int) -> float:
        if self._active[arm] < self._need[arm % self._halves]:
            return float("inf")  # a warm-up reading that failed, or an item that opened again
        return self._urgency(arm)

    def _finish_warmup(self) -> None:
        self._warming = False
        self._warmed_up()
        self._turn = 0
        for half, heap in enumerate(self._heaps):
            heap.fill([arm for arm in self._arms(half) if self._open[arm]], self._priority)


def cross_fit_allocation(cross_fit: bool) -> Allocation:
    """What an estimator must know of a sampler that looks at scores."""
    return Allocation.CROSS_FIT if cross_fit else Allocation.ADAPTIVE
