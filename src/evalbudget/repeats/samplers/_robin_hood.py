"""ROBIN-HOOD as published: an upper confidence bound on each item's variance."""

from __future__ import annotations

import math
from typing import Unpack

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.samplers._urgency import UrgencySampler
from evalbudget.sampler import Allocation, SamplerOptions

_SMALLEST_DENOMINATOR = 1e-3


class RobinHood(UrgencySampler):
    r"""The paper's method, kept literal as the reference.

    :math:`t_0 = \lceil 4 \ln(1/\delta) \rceil` readings each, then :math:`\arg\max_i \bar V_i / n_i` with
    :math:`\bar V_i = s_i^2 / (1 - \sqrt{4 \ln(1/\delta) / n_i})` and :math:`s_i^2` with 1/n.

    The denominator is guarded at 0.001, which a ``t0`` below the published one would make negative. An item
    whose first ``t0`` scores all agree is never asked again: the plateau of the paper's Figure 5.

    Args:
        delta: .007 as in the paper's experiments gives t0 = 20.
        t0: readings of each item first; None for the published number.
        warmup: at least this many readings of each item (a host's own epochs).
        common: see UrgencySampler.

    Raises:
        InvalidInputError: delta is not strictly between 0 and 1, or t0 is below 2.

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
        warmup: int = 1,
        **common: Unpack[SamplerOptions],
    ) -> None:
        if not 0.0 < delta < 1.0:
            raise InvalidInputError(f"robin-hood got delta={delta:g}; it must lie strictly between 0 and 1")
        self._bonus = 4.0 * math.log(1.0 / delta)
        first = math.ceil(self._bonus) if t0 is None else t0
        if t0 is not None and t0 < 2:
            raise InvalidInputError(f"robin-hood got t0={t0}; a variance needs at least 2 readings")
        super().__init__(design, warmup=max(warmup, first, 2), options={"delta": delta, "t0": t0}, **common)

    def _urgency(self, item: int) -> float:
        n = self.n_read(item)
        if n < 2:
            return 0.0
        denominator = max(1.0 - math.sqrt(self._bonus / n), _SMALLEST_DENOMINATOR)
        return self.sum_of_squares(item) / n / denominator / self.n_asked(item)
