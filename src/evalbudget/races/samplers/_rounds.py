"""What a racing sampler is asked and what it answers: what was asked so far, and the next round."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from evalbudget.races._draws import Chances, ModelDraws
from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray

OPEN, ASKED, READ, CLOSED = range(4)
"""What may become of a cell: to be asked, under way, with a score, without one for good."""

T = TypeVar("T")

Frozen = tuple[FloatArray, float, float]
"""Predictions of the items of a round, their sum over the items not drawn before it, and that of squares."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Every cell that rounds asked for, in their order, and what came of it.

    Attributes:
        model: of each cell, shape (k,).
        item: of each cell, same shape.
        round: that asked for it, same shape.
        value: its score, in [0, 1], same shape; nan if it has none.
        state: ``READ``, or ``CLOSED`` for good without a score, same shape. Another one only in a round that
            is not finished, and where a model left in the middle of one.
        cost: of a request of each cell on average, same shape, 0 where it is not known; None where costs are
            not weighed.
        row: where each cell of the design stands, shape (n_models, n_items); below 0 where it does not.
        last: the rows of the last round.
        n_finished: rounds of which every cell is settled.
        drawn: cells of each model that rounds asked for, shape (n_models,).
        n_read: scores of each model in finished rounds, same shape.
        total: their sum, same shape.
        lost_at: requests in all when a model was found to be down, or was withdrawn while it was in the
            race, same shape; -1 where it was not.
        is_withdrawn: whether a model was withdrawn, in the race or not, same shape.
        asked: requests in all.
    """

    model: IntArray
    item: IntArray
    round: IntArray
    value: FloatArray
    state: NDArray[np.int8]
    cost: FloatArray | None
    row: IntArray
    last: slice
    n_finished: int
    drawn: IntArray
    n_read: IntArray
    total: FloatArray
    lost_at: IntArray
    is_withdrawn: BoolArray
    asked: int

    @property
    def means(self) -> FloatArray:
        """Mean score of each model over finished rounds, shape (n_models,); nan without any."""
        with np.errstate(invalid="ignore"):
            return self.total / np.where(self.n_read > 0, self.n_read, np.nan)

    @property
    def is_finished(self) -> bool:
        """Whether every round is."""
        return self.last.start == self.last.stop or int(self.round[self.last.start]) < self.n_finished

    def so_far(self) -> tuple[IntArray, FloatArray]:
        """``n_read`` and ``total`` with the scores of a round that is not finished."""
        if self.is_finished:
            return self.n_read, self.total
        model, value = self.model[self.last], self.value[self.last]
        model, value = model[np.isfinite(value)], value[np.isfinite(value)]
        size = self.total.size
        return self.n_read + np.bincount(model, minlength=size), self.total + np.bincount(model, value, size)

    def without_open(self) -> Table:
        """The same as if the round under way had ended before its first cell that is not settled."""
        rows = self.last
        is_open = ~np.isin(self.state[rows], (READ, CLOSED))
        end = rows.start + int(is_open.argmax()) if is_open.any() else rows.stop
        settled, size = slice(rows.start, end), self.total.size
        n_read, total = replace(self, last=settled).so_far()
        drawn = self.drawn - np.bincount(self.model[end : rows.stop], minlength=size)
        return replace(self, last=settled, drawn=drawn, n_read=n_read, total=total)

    def scores(self, model: Any, item: Any) -> FloatArray:
        """Scores of cells, nan where there is none; shape as of ``row[model, item]``."""
        return np.asarray(self._at(self.value, np.nan, model, item))

    def settled(self, model: Any, item: Any) -> BoolArray:
        """Which cells have a score or will never have one; shape as of ``row[model, item]``."""
        return np.asarray(self._at(self.state, OPEN, model, item) >= READ)

    def _at(self, column: Any, nothing: Any, model: Any, item: Any) -> Any:
        row = self.row[model, item]
        if not column.size:
            return np.full(np.shape(row), nothing)
        return np.where((row >= 0) & (row < column.size), column.take(row, mode="clip"), nothing)

    def rows_of(self, model: int) -> IntArray:
        """Rows of the cells that rounds asked of a model, in draw order."""
        row = self.row[model]
        return np.asarray(np.sort(row[(row >= 0) & (row < self.model.size)]))


@dataclass(frozen=True, kw_only=True, eq=False)
class Note:
    """What one plan hands to the next: all that was learned and cannot be read off the table.

    A sampler that keeps more adds fields in a subclass. Nothing in a note is written to once it is made:
    change a copy, and share what stays.

    Attributes:
        left_at: requests in all when each model left the race, shape (n_models,); -1 while it is in it.
        lost: which models left because they were down or withdrawn, same shape.
        n_anchors: items at the start of the order that were chosen, not drawn.
        past: of each model, of each of its rounds, what was predicted before it; empty without predictions.
        chances: of each model, of each of its rounds, those of its draws; empty where these are uniform.
    """

    left_at: IntArray
    lost: BoolArray
    n_anchors: int = 0
    past: list[tuple[Frozen, ...]] | tuple[()] = ()
    chances: list[tuple[Chances, ...]] | tuple[()] = ()

    @property
    def is_in(self) -> BoolArray:
        """Which models are in the race, shape (n_models,)."""
        return self.left_at < 0

    @property
    def remaining(self) -> IntArray:
        """Models in the race, indices."""
        return np.flatnonzero(self.left_at < 0)

    def but(self, **changes: Any) -> Self:
        """The same with other values: what dataclasses.replace does in five times as long."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), **changes)
        return other

    def leaving(self, models: Iterable[int], asked: int) -> Self:
        """The same once these models have left, those that are still in the race."""
        left_at = self.left_at.copy()
        left_at[[model for model in models if left_at[model] < 0]] = asked
        return self.but(left_at=left_at)


class Round(NamedTuple):
    """Cells to ask, in this order, and what the plan after them must know.

    Attributes:
        model: of each cell, shape (k,).
        item: of each cell, same shape.
        note: given to the next plan.
        propensity: with which each cell was drawn, same shape; None where they were not drawn so.
    """

    model: IntArray
    item: IntArray
    note: Any
    propensity: FloatArray | None = None


class Stop(NamedTuple):
    """Ask nothing more, and what is known at the end."""

    reason: str
    note: Any


def to_change(one: T) -> T:
    """Another one whose arrays, lists and dicts may be written to while this one stays."""
    other = object.__new__(type(one))
    kinds = np.ndarray, list, dict
    vars(other).update({k: v.copy() if type(v) in kinds else v for k, v in vars(one).items()})
    return other


def draws_of(table: Table, note: Note, model: int, *, cost: float = float("nan")) -> ModelDraws:
    """A model's cells in draw order up to the first one that is open, for estimators."""
    row = table.rows_of(model)
    is_open = np.flatnonzero(table.state[row] < READ)
    row = row[: int(is_open[0])] if is_open.size else row
    k = min(note.n_anchors, row.size)
    known = row[:k][table.state[row[:k]] == READ]
    drawn = row[k:]
    batch = np.unique(table.round[drawn], return_inverse=True)[1].astype(np.int64)
    n_batches = int(batch[-1]) + 1 if batch.size else 0
    past = note.past[model][:n_batches] if note.past else ()
    none = np.zeros(n_batches)
    return ModelDraws(
        n_items=table.row.shape[1] - (k - known.size),
        known=table.value[known],
        known_item=table.item[known].astype(np.int64),
        value=table.value[drawn],
        item=table.item[drawn].astype(np.int64),
        batch=batch,
        cost=cost,
        prediction=np.concatenate([np.zeros(0), *(f for f, _, _ in past)])[: drawn.size]
        if past
        else np.zeros(drawn.size),
        unseen_prediction_sum=np.array([total for _, total, _ in past]) if past else none,
        unseen_prediction_sum_sq=np.array([squares for *_, squares in past]) if past else none,
        chances=Chances.joined(note.chances[model], drawn.size) if note.chances else None,
    )
