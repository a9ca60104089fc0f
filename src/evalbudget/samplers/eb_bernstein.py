"""Empirical-Bayes Bernstein: the recommended repeats sampler."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from evalbudget.design import Cell, Design
from evalbudget.errors import InvalidInputError
from evalbudget.samplers.objective import Objective
from evalbudget.samplers.repeats import RepeatSampler, cross_fit_allocation
from evalbudget.shrinkage import VariancePrior


class EBBernstein(RepeatSampler):
    r"""Shrinks each item's variance towards the pool's and adds a Bernstein term for what was not seen.

    After ``warmup`` readings each, the prior (m, kappa) is fitted to the pool and frozen;
    :math:`V_i = (\kappa m + SS_i)/(\kappa + n_i - 1)` and the next reading goes to

    .. math:: \arg\max_i \sqrt{V_i/n_i} + c\sqrt m/n_i \quad (\text{worst-item}), \qquad
              \arg\max_i w_i^2 V_i / (n_i (n_i+1)) \quad (\text{mse, mean}).

    No item is given up because its first scores agreed, and there is nothing to tune.

    Args:
        design: one model, one rater.
        objective: ``worst-item``, ``mse`` or ``mean``.
        weights: w_i of the benchmark mean, shape (n_items,); equal if None; only ``mean`` uses them.
        cross_fit: count each half of an item's readings out by the other half's scores, so that the benchmark
            mean stays unbiased and all readings count for it; None turns it on for ``mse`` and ``mean``. For
            ``worst-item`` it costs a tenth to a quarter at 10 readings per item, and little from 20 on.
        warmup: readings of each item first; None for 3, or 4 with cross_fit.
        bonus: c; None for sqrt(ln K), or sqrt(2 ln K) once every score of the warm-up was one of two values.
        seed: of the order among equals.
        max_failures: see Sampler.

    Raises:
        UnknownNameError: no such objective.
        InvalidInputError: a warm-up too short for variances (2, or 4 with cross_fit), weights of another
            shape, negative or not finite.
    """

    name = "eb-bernstein"

    def __init__(
        self,
        design: Design,
        *,
        objective: str = Objective.WORST_ITEM,
        weights: Sequence[float] | None = None,
        cross_fit: bool | None = None,
        warmup: int | None = None,
        bonus: float | None = None,
        seed: int = 0,
        max_failures: int = 3,
    ) -> None:
        self.objective = Objective.named(objective)
        crossed = self.objective is not Objective.WORST_ITEM if cross_fit is None else cross_fit
        first = (4 if crossed else 3) if warmup is None else warmup
        least = 4 if crossed else 2
        if first < least:
            raise InvalidInputError(f"{self.name} got warmup={first}; to see variances it needs {least}")
        super().__init__(
            design,
            warmup=first,
            cross_fit=crossed,
            seed=seed,
            max_failures=max_failures,
            options={
                "objective": self.objective.value,
                "weights": None if weights is None else tuple(weights),
                "cross_fit": crossed,
                "bonus": bonus,
            },
        )
        self.allocation = cross_fit_allocation(crossed)
        self._weights_sq = _squared_weights(self.name, weights, design.n_items)
        self._bonus = bonus
        self._values: list[set[float]] = [set() for _ in range(self._halves)]  # of the warm-up, at most 3
        self._priors: list[VariancePrior] = []
        self._linear: list[float] = []

    def _warmed_up(self) -> None:
        self._priors, self._linear = [], []
        for half in range(self._halves):
            arms = [arm for arm in self.arms(half) if self.n_read(arm) >= 2]
            degrees = [self.n_read(arm) - 1 for arm in arms]
            variances = [self.sum_of_squares(arm) / nu for arm, nu in zip(arms, degrees, strict=True)]
            prior = VariancePrior.fit(variances, degrees)
            self._priors.append(prior)
            self._linear.append(self._c(half) * math.sqrt(prior.mean))

    def _c(self, half: int) -> float:
        if self._bonus is not None:
            return self._bonus
        log_items = math.log(self.design.n_items)
        return math.sqrt(log_items if len(self._values[half]) > 2 else 2.0 * log_items)

    def _learn(self, cell: Cell, value: float) -> None:
        values = self._values[cell.epoch % self._halves]
        if not self._frozen and len(values) <= 2:
            values.add(value)
        super()._learn(cell, value)

    def _urgency(self, arm: int) -> float:
        n = self.n_asked(arm)
        seen = self.evidence(arm)
        half = seen % self._halves
        prior = self._priors[half]
        if not prior.mean > 0.0:
            return -float(n)  # all scores of the warm-up agreed: round-robin
        v = prior.posterior_mean(self.sum_of_squares(seen), max(0, self.n_read(seen) - 1))
        if self.objective is Objective.WORST_ITEM:
            return math.sqrt(v / n) + self._linear[half] / n
        return self._weights_sq[arm // self._halves] * v / (n * (n + 1))


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
