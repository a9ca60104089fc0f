"""What all repeats samplers share: warm-up, cross-fit halves, exact sums, failures, the heap."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from evalbudget.design import Cell, Design, Request
from evalbudget.errors import InvalidInputError, SamplerError
from evalbudget.judge_effects import judge_effects
from evalbudget.sampler import Allocation, Eligible, Option, Sampler
from evalbudget.samplers._heap import UrgencyHeap

# Scores are summed as integer multiples of 2^-50: integer sums do not depend on the order of completion.
_SHIFT = 50
_ONE = float(2**_SHIFT)
_HUGE = float(2**900)
_SHIFTED = 2**_SHIFT  # an integer: so divided, even huge sums come out as floats
_LARGEST = 1e290  # so that sums over items stay finite

JudgeOf = Callable[[int, int], int]
"""Who scores this item and epoch, both counted from 0."""


class RepeatSampler(Sampler):
    """Asks items of one model again and again; an author writes :meth:`_urgency`.

    Every item is read ``warmup`` times first. Then the most urgent item is asked next, counting requests in
    flight as readings to come; among equally urgent items the one with the fewest readings.

    An arm is an item, and its index the item's. Only with ``cross_fit`` has every item two arms, half A (even
    epochs) and half B (odd epochs): readings go to A and B in turn, and the urgency of an arm may look at
    :meth:`evidence`, its item's *other* half, only, so that each half's mean is unbiased. What may be looked
    at is the warm-up and, as the run goes on, the first g readings of every arm, g about two thirds of the
    average: every arm gets those whatever the scores. Were all of B's readings looked at, how many there are
    would tell A's count about A's own scores.

    The warm-up is over when a request is handed out after every open item was read ``warmup`` times.

    With several judges call :meth:`rotate` first. Scores of an item then differ because judges differ, so
    their deviations from the panel, gammahat, are estimated from the warm-up by two-way least squares (see
    :func:`~evalbudget.judge_effects.judge_effects`), frozen, and taken out of every score: what is left
    decides. With ``cross_fit`` both halves share gammahat; an item's own scores are 1/n_items of it.

    Args:
        design: one model, any number of items; several raters only if they take turns.
        warmup: readings of each item before any is preferred, at least 1 (2 with ``cross_fit``).
        cross_fit: count each half out by the other half's scores.
        seed: of the order among equals.
        max_failures: see Sampler.
        options: see Sampler.

    Raises:
        InvalidInputError: several models, or a warm-up too short.
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
        super().__init__(design, seed=seed, max_failures=max_failures, options={**options, "warmup": warmup})
        if design.n_models != 1:
            raise InvalidInputError(
                f"{self.name} allocates repeats over the items of one model; got {self._shape()}. Use one "
                "sampler per model"
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
        self._n = [0] * n_arms  # came back with a score
        self._seen = [0] * n_arms  # of these, may be looked at
        self._sum = [0] * n_arms
        self._sum_sq = [0] * n_arms
        self._open = [True] * n_arms
        self._n_open = n_arms
        self._stage = _Stage(max(self._need)) if cross_fit else None
        self._unseen: dict[int, list[tuple[int, int]]] = {}  # arm -> (epoch of the arm, score)
        self._judge_of: JudgeOf | None = None
        self._held: list[tuple[int, int, int, int]] = []  # until gammahat is known: arm, epoch, judge, score
        self._gamma: list[int] = []  # of each judge, in the units of the scores
        self._cold = n_arms  # open arms with fewer readings than the warm-up needs
        self._warming = True
        self._frozen = False  # the end of the warm-up is final
        self._turn = 0
        order: list[int] = np.random.default_rng(seed).permutation(design.n_items).tolist()
        rank = [0] * n_arms
        for position, item in enumerate(order):
            for half in range(halves):
                rank[item * halves + half] = position * halves + half
        self._heaps = [UrgencyHeap(rank) for _ in range(halves)]
        self._fill()

    @property
    def minimum_readings(self) -> int:
        """The smallest budget that lets this sampler decide anything."""
        return self.design.n_items * self.warmup

    def rotate(self, judge_of: JudgeOf, *, rotation: str = "given") -> None:
        """Have the raters of the design take turns.

        Args:
            judge_of: rater of an item and epoch (both from 0); must always answer the same.
            rotation: name of the schedule, for the journal.

        Raises:
            InvalidInputError: the design has a single rater.
            SamplerError: something was asked already.
        """
        if self.design.n_raters < 2:
            raise InvalidInputError(
                f"{self.name} was told to rotate judges, but the design has the one rater "
                f"{self.design.raters[0]!r}; give the design all of them"
            )
        if self.asked:
            raise SamplerError(f"{self.name} was asked before it was told to rotate judges; rotate first")
        self._judge_of = judge_of
        self.options["rotation"] = rotation

    def closes_as(self, cell: Cell) -> Cell:
        """The item, whoever failed on it."""
        return Cell(item=cell.item)

    def counts(self) -> tuple[int, ...]:
        """Readings per item so far, failed ones not counted."""
        h = self._halves
        return tuple(sum(self._n[i * h : (i + 1) * h]) for i in range(self.design.n_items))

    # what an author writes

    @abstractmethod
    def _urgency(self, arm: int) -> float:
        """How much the arm's next reading is wanted after the warm-up; larger first.

        It may use :meth:`n_asked` of the arm, and of its :meth:`evidence` whatever was read. It is called
        again when one of these changed.
        """

    def _warmed_up(self) -> None:
        """Fix what is learned from the whole pool; called before the first :meth:`_urgency`.

        It is called again if more readings come in before a request was handed out.
        """

    # what an author may look at

    def arms(self, half: int = 0) -> range:
        """All arms; with ``cross_fit`` those of one half."""
        return range(half, len(self._n), self._halves)

    def evidence(self, arm: int) -> int:
        """The arm whose scores may decide how often ``arm`` is asked: itself, or its item's other half."""
        return arm ^ 1 if self._halves == 2 else arm

    def n_asked(self, arm: int) -> int:
        """Readings of the arm, those in flight included, failed ones not."""
        return self._active[arm]

    def n_read(self, arm: int) -> int:
        """Readings of the arm that came back with a score; with ``cross_fit`` those that may be looked at."""
        return self._seen[arm]

    def sum_of_squares(self, arm: int) -> float:
        """sum_j (x_j - mean)^2 of the :meth:`n_read` readings, independent of their order; at most 1e290."""
        n = self._seen[arm]
        if n < 2:
            return 0.0
        total = self._sum[arm]
        try:
            return min((n * self._sum_sq[arm] - total * total) / (n << 2 * _SHIFT), _LARGEST)
        except OverflowError:
            return _LARGEST

    # Sampler

    def adopt(self, cell: Cell) -> Request:
        """Count a cell that somebody else asked (a host's first epochs, an earlier run) as asked.

        Returns:
            The request to tell its reading against.

        Raises:
            InvalidInputError: the cell is not in the design; or all epochs of its item (or half) up to the
                largest so far are asked and none failed, so that this one would be asked twice.
        """
        self._check_raters()
        if cell in self.design:
            arm = self._arm(cell)
            if cell.epoch // self._halves < self._epochs[arm] <= self._active[arm]:
                raise InvalidInputError(
                    f"{cell} was asked before, so it cannot be adopted; adopt each cell once, and a new "
                    "reading of the item with an epoch of its own"
                )
        return super().adopt(cell)

    def _next(self, eligible: Eligible | None) -> Cell | None:
        self._check_raters()
        self._end_warmup()
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
        epoch = self._epochs[arm] * self._halves + half
        return Cell(0, item, epoch, 0 if self._judge_of is None else self._judge_of(item, epoch))

    def _check_raters(self) -> None:
        if self._judge_of is None and self.design.n_raters > 1:
            raise InvalidInputError(
                f"{self.name} has {self.design.n_raters} raters and does not know who scores what; call "
                "rotate() with a schedule, or use one sampler per rater"
            )

    def _arm(self, cell: Cell) -> int:
        return cell.item * self._halves + cell.epoch % self._halves

    def _asked(self, cell: Cell) -> None:
        self._end_warmup()
        if not self._warming:
            self._frozen = True
            self._held = []
        arm = self._arm(cell)
        self._epochs[arm] = max(self._epochs[arm], cell.epoch // self._halves + 1)
        self._active[arm] += 1
        self._turn = (arm % self._halves + 1) % self._halves
        self._place(arm)
        if self._stage is not None and self._frozen and self._stage.advance(self.asked / len(self._n)):
            self._look_again(self._stage.usable)

    def _learn(self, cell: Cell, value: float) -> None:
        self._reconsider_warmup()
        arm = self._arm(cell)
        units = _units(value)
        self._n[arm] += 1
        index = cell.epoch // self._halves
        if self._gamma and self._frozen:
            units -= self._gamma[cell.rater]
        if self._judge_of is not None and not self._frozen:
            self._held.append((arm, index, cell.rater, units))
        elif self._stage is None or not self._frozen or index < self._stage.usable:
            self._look_at(arm, units)
        else:
            self._unseen.setdefault(arm, []).append((index, units))
        if self._n[arm] == self._need[arm % self._halves] and self._open[arm]:
            self._cold -= 1
        if not self._warming:
            self._place(self.evidence(arm))  # the arm whose urgency rests on these scores

    def _look_at(self, arm: int, units: int) -> None:
        self._seen[arm] += 1
        self._sum[arm] += units
        self._sum_sq[arm] += units * units

    def _look_afresh(self) -> None:
        """Forget what was looked at."""
        n_arms = len(self._n)
        self._seen, self._sum, self._sum_sq = [0] * n_arms, [0] * n_arms, [0] * n_arms

    def _correct_judges(self) -> None:
        """Estimate the judges' deviations from the warm-up and take them out of it."""
        self._held.sort()  # the order of completion must not matter
        arm, _, judge, units = (list(column) for column in zip(*self._held, strict=True))
        gamma = judge_effects(
            np.array(arm, dtype=np.int64) // self._halves,
            np.array(judge, dtype=np.int64),
            np.array([u / _SHIFTED for u in units]),
            self.design.n_raters,
        ).gamma
        self._gamma = [_units(g) for g in gamma.tolist()]
        self._look_afresh()
        for entry in self._held:
            self._look_at(entry[0], entry[3] - self._gamma[entry[2]])

    def _look_again(self, usable: int) -> None:
        for arm, unseen in self._unseen.items():
            for index, units in unseen:
                if index < usable:
                    self._look_at(arm, units)
            self._unseen[arm] = [entry for entry in unseen if entry[0] >= usable]
        self._fill()

    def _failed(self, cell: Cell) -> None:
        self._reconsider_warmup()
        arm = self._arm(cell)
        self._active[arm] -= 1
        self._place(arm)

    def _reads(self, key: Cell) -> int:
        first = key.item * self._halves
        return sum(self._n[first : first + self._halves])

    def _set_open(self, cell: Cell, is_open: bool) -> None:
        self._reconsider_warmup()
        for half in range(self._halves):
            arm = cell.item * self._halves + half
            self._open[arm] = is_open
            self._n_open += 1 if is_open else -1
            if self._n[arm] < self._need[half]:
                self._cold += 1 if is_open else -1
            self._place(arm)

    # the warm-up ends with a request, not with a reading, so that the order of completion does not matter

    def _end_warmup(self) -> None:
        if self._warming and self._cold == 0 and self._n_open > 0:
            self._warming = False
            if self._judge_of is not None:
                self._correct_judges()
            self._warmed_up()
            self._turn = 0
            self._fill()

    def _reconsider_warmup(self) -> None:
        if not (self._warming or self._frozen):
            self._warming = True
            self._fill()

    # the heaps

    def _fill(self) -> None:
        for half, heap in enumerate(self._heaps):
            ranked = ((arm, self._rank(arm)) for arm in self.arms(half) if self._open[arm])
            heap.fill((arm, urgency, self._active[arm]) for arm, urgency in ranked if urgency is not None)

    def _place(self, arm: int) -> None:
        """Put the arm where it belongs: in the heap at its urgency, or out of it."""
        heap = self._heaps[arm % self._halves]
        urgency = self._rank(arm) if self._open[arm] else None
        if urgency is None:
            heap.remove(arm)
        else:
            heap.update(arm, urgency, self._active[arm])

    def _rank(self, arm: int) -> float | None:
        """Urgency of an open arm now; None if it must not be asked."""
        if self._active[arm] < self._need[arm % self._halves]:
            # after the warm-up: one of its readings failed, or the item opened again
            return math.inf
        if self._warming:
            return None
        if self._stage is not None and self._active[arm] < self._stage.floor:
            return math.inf
        urgency = self._urgency(arm)
        if math.isnan(urgency):
            raise SamplerError(f"sampler {self.name!r} gave item {arm // self._halves} the urgency nan")
        return urgency


def _units(value: float) -> int:
    return int(value * _ONE) if abs(value) < _HUGE else int(value) << _SHIFT


class _Stage:
    """How many readings every arm gets whatever the scores, and how many of them may be looked at.

    When arms have 1.25 g readings on average, all are brought up to g, and once there were requests enough
    for that, whatever the scores, everybody's first g may be looked at and g grows by a tenth. Over 2000 runs
    on skewed Bernoulli scores, 5 to 20 readings per item, the benchmark mean was off by less than .05 of its
    noise. The constants matter little from 1.1 to 1.3; from 1.5 on, evidence comes too late.
    """

    def __init__(self, warmup: int) -> None:
        self.floor = self.usable = warmup
        self._goal = warmup + 1

    def advance(self, average: float) -> bool:
        """Whether something changed, at so many requests per arm."""
        if self.floor < self._goal:
            if average < 1.25 * self._goal:
                return False
            self.floor = self._goal
            return True
        if average < 1.25 * self._goal + (self._goal - self.usable):
            return False
        self.usable = self._goal
        self._goal = math.ceil(1.1 * self._goal)
        return True


def cross_fit_allocation(cross_fit: bool) -> Allocation:
    """What an estimator must know of a sampler that looks at scores."""
    return Allocation.CROSS_FIT if cross_fit else Allocation.ADAPTIVE
