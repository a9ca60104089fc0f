"""ROBIN-HOOD as published: an upper confidence bound on each item's variance."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.repeats._rounds import Note, Readings, Round, Wait
from evalbudget.repeats.samplers._base import RepeatSampler
from evalbudget.sampler import Allocation, SamplerOptions
from evalbudget.statistics._bounds import FloatArray, IntArray

_SMALLEST_DENOMINATOR = 1e-3


class RobinHood(RepeatSampler):
    r"""The paper's method, kept literal as the reference.

    :math:`t_0 = \lceil 4 \ln(1/\delta) \rceil` readings each, then :math:`\arg\max_i \bar V_i / n_i` with
    :math:`\bar V_i = s_i^2 / (1 - \sqrt{4 \ln(1/\delta) / n_i})` and :math:`s_i^2` with 1/n.

    Readings that are decided on and did not come back yet count in :math:`n_i`; they leave :math:`s_i^2`
    as it is.

    The denominator is guarded at 0.001, which a ``t0`` below the published one would make negative. An item
    whose first ``t0`` scores all agree is never asked again: the plateau of the paper's Figure 5.

    Args:
        delta: .007 as in the paper's experiments gives t0 = 20.
        t0: readings of each item first; None for the published number.
        per_round: readings that are decided on at once, at least 1: 1 is the paper's; None for as many as
            there are items, which is as good.
        warmup: at least this many readings of each item (a host's own epochs).
        common: see RepeatSampler.

    Raises:
        InvalidInputError: delta is not strictly between 0 and 1, t0 is below 2, or per_round is below 1.

    References:
        arXiv 2602.15481 (ROBIN-HOOD), Algorithm 2 with the constants of its experiments.
    """

    name = "robin-hood"
    allocation = Allocation.ADAPTIVE

    def __init__(
        self,
        design: Design,
        *,
        delta: float = 0.007,
        t0: int | None = None,
        per_round: int | None = None,
        warmup: int = 1,
        **common: Unpack[SamplerOptions],
    ) -> None:
        if not 0.0 < delta < 1.0:
            raise InvalidInputError(f"robin-hood got delta={delta:g}; it must lie strictly between 0 and 1")
        self._bonus = 4.0 * math.log(1.0 / delta)
        first = math.ceil(self._bonus) if t0 is None else t0
        if t0 is not None and t0 < 2:
            raise InvalidInputError(f"robin-hood got t0={t0}; a variance needs at least 2 readings")
        if per_round is not None and per_round < 1:
            raise InvalidInputError(f"robin-hood got per_round={per_round}; a round has at least 1 reading")
        options = {"delta": delta, "t0": t0, "per_round": per_round}
        super().__init__(design, warmup=max(warmup, first, 2), options=options, **common)
        self._per_round = per_round or design.n_items

    def plan(self, table: Readings, last: Note | None) -> Round | Wait:
        """``per_round`` readings, each of the item with the largest bound over its readings then."""
        if last is None:
            return self.warm_up()
        if last.phase == 0 and (missing := table.out_of(0)):
            return Wait(table.settled + missing)
        n, squares = table.moments(self.design.n_raters)
        s2 = squares / np.maximum(n, 1)

        def index(item: IntArray, asked: IntArray) -> FloatArray:
            return s2[item] / np.maximum(1.0 - np.sqrt(self._bonus / asked), _SMALLEST_DENOMINATOR) / asked

        items = table.most_wanted(self.order, self._per_round, index)
        return Round(items, Note(last.phase + 1))
