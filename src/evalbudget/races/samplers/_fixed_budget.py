"""What samplers share that plan a race for a number of readings: the budget, paired means, who is left."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.errors import BudgetError
from evalbudget.races.samplers._base import RacingOptions, RacingSampler
from evalbudget.races.samplers._rounds import Note, Round, Stop, Table
from evalbudget.statistics._bounds import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Stage(Note):
    """How many of the rounds of the paper are over."""

    number: int = 0


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
    note_kinds = (Stage,)

    def __init__(self, design: Design, *, budget: int | None = None, **common: Unpack[RacingOptions]) -> None:
        super().__init__(design, batch=1, options={"budget": budget}, **common)
        self.budget = self._n_models * self._n_items if budget is None else int(budget)
        if budget is not None and budget < self.minimum_readings:
            raise BudgetError(
                f"budget {budget} is too small for {self.name} with {self._n_models} models, which needs "
                f"{self.minimum_readings} readings at least; raise it, or race fewer models"
            )

    @abstractmethod
    def _new_items(self, table: Table, note: Stage) -> int:
        """Items that every model left gets in this round; 0 to go on to the next."""

    @abstractmethod
    def _left_after(self, note: Stage) -> int:
        """How many models are left after this round."""

    def plan(self, table: Table, last: Stage | None) -> Round | Stop:
        """The same new items for all that are left, once the worst of the last round have left."""
        note: Stage = self.resumed(table, last)
        if last is not None:
            note = self._rejected(table, note)
        if note.remaining.size == 1:
            return Stop("only one model is left", note)
        if reason := self.why_over(table, note):
            return Stop(reason, note)
        return self.next_items(table, note, self.drawable(table, note), max(1, self._new_items(table, note)))

    def _rejected(self, table: Table, note: Stage) -> Stage:
        while True:
            remaining = note.remaining
            surplus = remaining.size - self._left_after(note)
            if surplus > 0:
                means = self._paired_means(table, note, remaining)
                worst = remaining[np.lexsort((-self._rank[remaining], means))[:surplus]]
                note = note.leaving(worst.tolist(), table.asked)
            note = note.but(number=note.number + 1)
            nobody = note.remaining.size <= 1 or not self.drawable(table, note).size
            if nobody or self._new_items(table, note) > 0:
                return note

    def estimates(self, table: Table, note: Any) -> FloatArray:
        """Paired means between rounds."""
        remaining = note.remaining
        if not table.is_finished or not remaining.size:
            return super().estimates(table, note)
        estimate = np.full(self._n_models, np.nan)
        estimate[remaining] = self._paired_means(table, note, remaining)
        return estimate

    def _paired_means(self, table: Table, note: Stage, models: IntArray) -> FloatArray:
        """Means of the models as if each had read all items that any of them did, shape (k,).

        Plain means as long as no cell is missing; else the additive fit of model and item.
        """
        if (table.n_read[models] == table.drawn[models]).all():
            return table.means[models]
        item = self.order(int(models[0]), note)[: int(table.drawn[models].max())]
        return additive_means(np.stack([table.scores(model, item) for model in models.tolist()]))


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
