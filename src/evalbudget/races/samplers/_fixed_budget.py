"""What samplers share that plan a race for a number of readings: the budget, paired means, who is left."""

from __future__ import annotations

from abc import abstractmethod
from typing import Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.errors import BudgetError
from evalbudget.races.samplers._base import RacingOptions, RacingSampler, Step
from evalbudget.statistics._bounds import FloatArray, IntArray


class FixedBudgetSampler(RacingSampler):
    """Rounds in which all models left get the same new items, after which the worst leave.

    Args:
        budget: readings in all; None for every cell of the design. Failed readings are not planned for.
        common: see RacingSampler.

    Raises:
        BudgetError: the budget is below :attr:`minimum_readings`.
        InvalidInputError: see RacingSampler.
    """

    _common = RacingOptions

    def __init__(self, design: Design, *, budget: int | None = None, **common: Unpack[RacingOptions]) -> None:
        super().__init__(design, batch=1, options={"budget": budget}, **common)
        self.budget = self._n_models * self._n_items if budget is None else int(budget)
        if budget is not None and budget < self.minimum_readings:
            raise BudgetError(
                f"budget {budget} is too small for {self.name} with {self._n_models} models, which needs "
                f"{self.minimum_readings} readings at least; raise it, or race fewer models"
            )
        self._round = 0

    @abstractmethod
    def _new_items(self) -> int:
        """Items that every model left gets in this round; 0 to go on to the next."""

    @abstractmethod
    def _left_after(self) -> int:
        """How many models are left after this round."""

    def _plan(self) -> Step | None:
        if self._remaining().size == 1:
            self.stop_reason = "only one model is left"
        elif not self._stop_if_over():
            return self._draw(self._drawable(), max(1, self._new_items()))
        return None

    def _finished(self, step: Step) -> None:
        while True:
            self._reject()
            self._round += 1
            if self._remaining().size <= 1 or not self._drawable().size or self._new_items() > 0:
                return

    def _reject(self) -> None:
        remaining = self._remaining()
        surplus = remaining.size - self._left_after()
        if surplus > 0:
            means = self.paired_means(remaining)
            worst = remaining[np.lexsort((-self._rank[remaining], means))[:surplus]]
            for model in worst.tolist():
                self._leave(model)

    def _estimates(self) -> FloatArray:
        remaining = self._remaining()
        estimate = np.full(self._n_models, np.nan)
        if self._step is None and remaining.size:
            estimate[remaining] = self.paired_means(remaining)
            return estimate
        return super()._estimates()

    def paired_means(self, models: IntArray) -> FloatArray:
        """Means of the models as if each had read all items that any of them did, shape (k,).

        Plain means as long as no cell is missing; else the additive fit of model and item.
        """
        if (self._n_read[models] == self._drawn[models]).all():
            return self._means()[models]
        item = self._order(int(models[0]))[: int(self._drawn[models].max())]
        return additive_means(np.stack([self._scores_at(int(model), item) for model in models]))


def additive_means(scores: FloatArray) -> FloatArray:
    """Row effects of the least-squares fit score = row + column, shape (n_rows,).

    Args:
        scores: shape (n_rows, n_columns), nan where missing.

    Returns:
        Row effects plus the mean column effect; -inf for a row without scores.
    """
    read = ~np.isnan(scores)
    filled = np.where(read, scores, 0.0)
    rows, columns = read.sum(axis=1), read.sum(axis=0)
    effect = filled.sum(axis=1) / np.maximum(rows, 1)
    column = np.zeros(columns.size)
    for _ in range(20):
        column = (filled.sum(axis=0) - effect @ read) / np.maximum(columns, 1)
        effect = (filled.sum(axis=1) - read @ column) / np.maximum(rows, 1)
    level = column[columns > 0].mean() if columns.any() else 0.0
    return np.where(rows > 0, effect + level, -np.inf)
