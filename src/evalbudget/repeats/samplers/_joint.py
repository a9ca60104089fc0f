"""Several scores of every answer: which item's worst-known score is known worst."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from evalbudget.design import Cell, Design, Reading, Request
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.samplers._base import _ONE, JudgeOf
from evalbudget.repeats.samplers._default_auto import Auto


class _OneScore(Auto):
    """The default sampler, which says how large it takes an item's error to be."""

    def error(self, item: int) -> float:
        """U_i, in points of the score; 0 where no score of the warm-up varied."""
        urgency = Auto._urgency(self, item)
        if self._kernel is not None:  # there the fourth power, on a scale from -1 to 1
            return float(urgency**0.25 * self._kernel.range / (2.0 * _ONE))
        return max(urgency, 0.0)


class _Further(_OneScore):
    """A further score, learned from in step with the first one; its own order is never used."""

    def _place(self, item: int) -> None:
        if self._warming:
            super()._place(item)


class Joint(_OneScore):
    r"""Spreads one budget over D scores that every answer gets: none of them is to be known badly.

    Every reading brings its ``value``, the first score, and the others ``beside`` it. Each score is learned
    from as ``auto`` would, and after the warm-up the next reading goes to

    .. math:: \arg\max_i \max_d U_{id} / r_d

    where :math:`U_{id}`, in points, is what ``auto`` of score d takes item i's error for, and :math:`r_d` the
    range of score d. With one score this is ``auto``.

    A reading's weight holds for all its scores, and of the held-out readings no score is looked at: the
    benchmark means of all scores are unbiased. Give each its own estimate by
    :meth:`~evalbudget.repeats.estimates.ItemReadings.of_bought`.

    Args:
        design: one model; several raters only if they take turns.
        ranges: r_d, highest minus lowest possible score, of the first score and of those beside it.
        hold_out: see ``eb-bernstein``.
        budget: readings that will be bought in all, if known; see RepeatSampler.
        warmup: readings of each item first; the held-out one is among them.
        seed: of the order among equals.

    Raises:
        InvalidInputError: no range, one that is not positive and finite, or a warm-up too short; from
            ``tell``, a reading that does not bring one score per range.
    """

    name = "joint"

    def __init__(
        self,
        design: Design,
        *,
        ranges: Sequence[float] = (1.0,),
        hold_out: bool = True,
        budget: int | None = None,
        warmup: int = 3,
        seed: int = 0,
    ) -> None:
        if not ranges or not all(math.isfinite(r) and r > 0.0 for r in ranges):
            raise InvalidInputError(
                f"{self.name} got the ranges {list(ranges)}; give one positive, finite range per score"
            )
        self._ranges = tuple(float(r) for r in ranges)
        self._further = [
            _Further(design, hold_out=hold_out, budget=budget, warmup=warmup, seed=seed)
            for _ in self._ranges[1:]
        ]
        self._in_flight: dict[Cell, list[list[Request]]] = {}  # what the further samplers were asked
        self._beside: tuple[float, ...] = ()  # of the reading that is taken in
        super().__init__(design, hold_out=hold_out, budget=budget, warmup=warmup, seed=seed)
        self.options["ranges"] = self._ranges

    def tell(self, readings: Iterable[Reading]) -> None:
        """Take readings in, in any order, at any time.

        Raises:
            InvalidInputError: one does not bring as many scores as there are ranges.
            SamplerError: a reading answers a request that was never asked, or was told before.
        """
        for reading in readings:
            if reading.value is not None and len(reading.beside) != len(self._further):
                raise InvalidInputError(
                    f"{self.name} has {len(self._ranges)} ranges, but the reading of request "
                    f"{reading.request.id} brings {1 + len(reading.beside)} scores; give the first as value "
                    "and the others as beside"
                )
            self._beside = reading.beside
            super().tell((reading,))

    def rotate(self, judge_of: JudgeOf, *, rotation: str = "given") -> None:
        """Have the raters of the design take turns; see RepeatSampler."""
        super().rotate(judge_of, rotation=rotation)
        for sampler in self._further:
            sampler.rotate(judge_of, rotation=rotation)

    def assume_weight(self, cell: Cell, weight: float | None) -> None:
        """Take over the weight of a cell that is adopted next; see Sampler."""
        super().assume_weight(cell, weight)
        for sampler in self._further:
            sampler.assume_weight(cell, weight)

    def _give_up_and_reopen(self) -> None:
        for sampler in self._further:
            sampler._give_up_and_reopen()
        super()._give_up_and_reopen()

    def _asked(self, cell: Cell) -> None:
        self._in_flight.setdefault(cell, []).append([sampler.adopt(cell) for sampler in self._further])
        super()._asked(cell)

    def _learn(self, cell: Cell, value: float) -> None:
        requests = self._answered(cell)
        for sampler, request, score in zip(self._further, requests, self._beside, strict=True):
            sampler.tell((Reading(request, score),))
        super()._learn(cell, value)

    def _failed(self, cell: Cell) -> None:
        for sampler, request in zip(self._further, self._answered(cell), strict=True):
            sampler.tell((Reading(request, None),))
        super()._failed(cell)

    def _answered(self, cell: Cell) -> list[Request]:
        """What the further samplers were asked when this cell was, and is told now; each ask is told once."""
        waiting = self._in_flight[cell]
        requests = waiting.pop()
        if not waiting:
            del self._in_flight[cell]
        return requests

    def _warmed_up(self) -> None:
        for sampler in self._further:
            sampler._end_warmup()
        super()._warmed_up()

    def _cost_power(self) -> float:
        return 0.5 * self._cost_exponent

    def _urgency(self, item: int) -> float:
        scores = zip((self, *self._further), self._ranges, strict=True)
        return max(sampler.error(item) / r for sampler, r in scores)
