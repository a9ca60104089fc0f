"""Empirical-Bayes Bernstein: the recommended repeats sampler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import numpy as np

from evalbudget.design import Cell, Design
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.samplers._base import RepeatSampler
from evalbudget.repeats.samplers._objective import Objective
from evalbudget.sampler import Allocation, SamplerOptions
from evalbudget.statistics._shrinkage import VariancePrior


class EBBernsteinOptions(SamplerOptions, total=False):
    """What samplers like it take besides their own arguments; see :class:`EBBernstein`."""

    objective: str
    weights: Sequence[float] | None
    hold_out: bool
    budget: int | None
    warmup: int


class EBBernstein(RepeatSampler):
    r"""Shrinks each item's variance towards the pool's and adds a Bernstein term for what was not seen.

    After ``warmup`` readings each, the prior (m, kappa) is fitted to the pool and frozen;
    :math:`V_i = (\kappa m + SS_i)/(\kappa + n_i - 1)` and the next reading goes to

    .. math:: \arg\max_i \sqrt{V_i/n_i} + c\sqrt m/n_i \quad (\text{worst-item}), \qquad
              \arg\max_i w_i^2 V_i / (n_i (n_i+1)) \quad (\text{mse, mean}).

    No item is given up because its first scores agreed, and there is nothing to tune.

    When costs are weighed (:meth:`weigh_costs`), the index of an item whose reading costs :math:`c_i` times
    the typical one is divided by :math:`c_i` for ``mse`` and ``mean``, the gain per unit of money. For
    ``worst-item`` it is divided by :math:`c_i^{\gamma/2}`, so that squared errors end up in proportion to
    :math:`c_i^\gamma`: the least :math:`\sum_i s_i^p` under :math:`\sum_i c_i n_i = B` with
    :math:`s_i^2 = V_i/n_i` has :math:`n_i \propto (V_i^{p/2}/c_i)^{2/(p+2)}`, and with
    :math:`p = 2 \ln K` that norm comes near the largest of K errors, hence
    :math:`\gamma = 2/(p+2) = 1/(1 + \ln K)`. With equal, known variances and
    costs over two decades this is within two percent of the best there is (``benchmarks/costs.py bound``).

    Args:
        objective: ``worst-item``, ``mse`` or ``mean``.
        weights: w_i of the benchmark mean, shape (n_items,); equal if None; only ``mean`` uses them.
        hold_out: fix every reading's weight before it is seen and keep one reading of every item out of all
            decisions, so that all readings count for an unbiased benchmark mean; False for those who want the
            items' scores only.
        budget: readings that will be bought in all, if known; see RepeatSampler.
        warmup: readings of each item first; the held-out one is among them.
        bonus: c; None for sqrt(ln K), or sqrt(2 ln K) once every score of the warm-up was one of two values.
        common: see RepeatSampler.

    Raises:
        UnknownNameError: no such objective.
        InvalidInputError: a warm-up too short for variances (3, or 2 without hold_out), weights of another
            shape, negative or not finite.
    """

    name = "eb-bernstein"

    def __init__(
        self,
        design: Design,
        *,
        objective: str = Objective.WORST_ITEM,
        weights: Sequence[float] | None = None,
        hold_out: bool = True,
        budget: int | None = None,
        warmup: int = 3,
        bonus: float | None = None,
        **common: Unpack[SamplerOptions],
    ) -> None:
        self.objective = Objective.named(objective)
        least = 3 if hold_out else 2
        if warmup < least:
            raise InvalidInputError(f"{self.name} got warmup={warmup}; to see variances it needs {least}")
        super().__init__(
            design,
            warmup=warmup,
            hold_out=hold_out,
            budget=budget,
            options={
                "objective": self.objective.value,
                "weights": None if weights is None else tuple(weights),
                "hold_out": hold_out,
                "bonus": bonus,
            },
            **common,
        )
        self.allocation = Allocation.WEIGHTED if hold_out else Allocation.ADAPTIVE
        self._weights_sq = _squared_weights(self.name, weights, design.n_items)
        self._bonus = bonus
        self._values: set[float] = set()  # of the warm-up, at most 3
        self._prior = VariancePrior(0.0, 0.0, 0)
        self._linear = 0.0

    def _warmed_up(self) -> None:
        items = [item for item in range(self.design.n_items) if self.n_read(item) >= 2]
        degrees = [self.n_read(item) - 1 for item in items]
        variances = [self.sum_of_squares(item) / nu for item, nu in zip(items, degrees, strict=True)]
        self._prior = VariancePrior.fit(variances, degrees)
        self._linear = self._c() * math.sqrt(self._prior.mean)

    def _c(self) -> float:
        if self._bonus is not None:
            return self._bonus
        log_items = math.log(self.design.n_items)
        return math.sqrt(log_items if len(self._values) > 2 else 2.0 * log_items)

    @property
    def _cost_exponent(self) -> float:
        """gamma: which power of an item's cost its squared error is to be in proportion to."""
        return 1.0 / (1.0 + math.log(self.design.n_items))

    def _cost_power(self) -> float:
        return 0.5 * self._cost_exponent if self.objective is Objective.WORST_ITEM else 1.0

    def _learn(self, cell: Cell, value: float) -> None:
        if not self._frozen and len(self._values) <= 2 and not self.holds_out(cell):
            self._values.add(value)
        super()._learn(cell, value)

    def _urgency(self, item: int) -> float:
        n = self.n_asked(item)
        prior = self._prior
        if not prior.mean > 0.0:
            return -float(n)  # all scores of the warm-up agreed: round-robin
        v = prior.posterior_mean(self.sum_of_squares(item), max(0, self.n_read(item) - 1))
        if self.objective is Objective.WORST_ITEM:
            return math.sqrt(v / n) + self._linear / n
        return self._weights_sq[item] * v / (n * (n + 1))


def _squared_weights(name: str, weights: Sequence[float] | None, n_items: int) -> list[float]:
    if weights is None:
        return [1.0] * n_items
    w = np.asarray(weights, dtype=float)
    if w.shape != (n_items,) or not np.isfinite(w).all() or (w < 0).any() or not (w > 0).any():
        raise InvalidInputError(
            f"{name} got weights of shape {w.shape} for {n_items} items; give one finite number >= 0 "
            "per item, not all zero"
        )
    squared: list[float] = (w * w).tolist()
    return squared
