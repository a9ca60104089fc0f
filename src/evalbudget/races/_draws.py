"""What one model answered in a race over models and items: arrays that samplers write and estimators read.

Every model has a fixed list of items it has to answer, at most once each. A few may be *chosen* (anchors):
they are known cells and say nothing about the others. The rest is drawn in a uniformly random order, which
models may share; or, by a sampler that says so (:class:`Chances`), one after another with probabilities of
their own. Cells are listed in draw order up to the first one that has not been read, so that the order in
which answers happen to arrive teaches nothing.

Estimators rest on two promises of whoever writes these arrays:

- The prediction of a drawn item was frozen before its batch was drawn, and depends on nothing but this
  model's own earlier readings and on data from outside the race (history). It must not use what *other*
  models of the race answered, nor be refitted at moments they decide: with a shared order their answers tell
  which items come next. It may rest on the anchor answers of all models: these are independent of the order
  of the rest.
- How many cells a model gets may depend on anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Self

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import FloatArray, IntArray

_ALIKE = 1e-6
"""Chances and predictions that differ by less, relative to their mean, differ by rounding."""


def _no_items() -> IntArray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class Chances:
    """How likely each draw of a model was, for items drawn with unequal probabilities, without replacement.

    Everything of a draw was fixed before its batch, and rests on this model's own earlier readings and on
    data from outside the race.

    Attributes:
        prediction: f of each drawn item, in [0, 1], shape (t,).
        unread_sum: sum of f over the items not yet drawn, the drawn one included, shape (t,).
        propensity: of the drawn item among them, in (0, 1], shape (t,).
        variance: expected variance of the corrected sum of all scores, shape (t,).
        skewness: its expected third central moment, shape (t,).
        least: at most the smallest -f/q over the items not yet drawn, shape (t,).
        most: at least the largest (1 - f)/q, shape (t,).
    """

    prediction: FloatArray
    unread_sum: FloatArray
    propensity: FloatArray
    variance: FloatArray
    skewness: FloatArray
    least: FloatArray
    most: FloatArray

    @classmethod
    def of(cls, p: FloatArray, q: FloatArray, order: IntArray) -> Self:
        """Of items drawn one after another by the same predictions and rates.

        The standard deviation of a score is taken to be that of a pass or a failure of the probability p.

        Args:
            p: predictions of the unread items, in (0, 1), shape (n,).
            q: their probabilities at the first draw, shape (n,), adding up to 1.
            order: of the items drawn, shape (t,).
        """
        noise = p * (1.0 - p)
        third = noise * (1.0 - 2.0 * p)

        def left(x: FloatArray) -> FloatArray:
            """Sum over the items not yet drawn, before each draw."""
            return np.asarray(x.sum() - (np.cumsum(x[order]) - x[order]), dtype=np.float64)

        share = np.maximum(left(q), q[order])
        return cls(
            prediction=p[order],
            unread_sum=left(p),
            propensity=np.minimum(q[order] / share, 1.0),
            variance=np.maximum(share * left(noise / q) - left(noise), 0.0),
            skewness=share**2 * left(third / q**2),
            least=share * float((-p / q).min()),
            most=share * float(((1.0 - p) / q).max()),
        )

    @classmethod
    def joined(cls, parts: Sequence[Chances], size: int) -> Self:
        """The first ``size`` draws of several batches."""
        return cls(
            *(
                np.concatenate([np.zeros(0), *(getattr(part, name.name) for part in parts)])[:size]
                for name in fields(cls)
            )
        )


@dataclass(frozen=True)
class ModelDraws:
    """One model's cells in draw order.

    Attributes:
        n_items: size of the model's benchmark: all items less those known beforehand to have no score and
            less the anchors that failed. Items that fail once drawn stay in; their value is nan.
        known: scores of the anchors that were answered, shape (k,), in [0, 1].
        value: scores of the drawn items, shape (t,), in [0, 1]; nan where the cell failed for good.
        item: the drawn items, shape (t,); two models are compared on the items they share.
        batch: number of the batch of each draw, shape (t,), non-decreasing, from 0 without gaps. The draws of
            a batch share their predictions and the propensity b / |U|, U being the items not yet drawn.
        prediction: f of each drawn item, shape (t,), in [0, 1]; any constant without a predictor.
        unseen_prediction_sum: sum of f over U just before each batch, shape (n_batches,).
        unseen_prediction_sum_sq: sum of f^2 over U just before each batch, shape (n_batches,).
        known_item: the anchors that were answered, shape (k,).
        cost: of all of the model's readings, in units of the budget.
        chances: of the draws, where they were not equal; then ``prediction`` and what follows from it is not
            used, and nothing is known. None where the order is uniformly random.

    Raises:
        InvalidInputError: shapes do not fit, scores or predictions leave [0, 1], or more is drawn than
            there is.
    """

    n_items: int
    known: FloatArray
    value: FloatArray
    item: IntArray
    batch: IntArray
    prediction: FloatArray
    unseen_prediction_sum: FloatArray
    unseen_prediction_sum_sq: FloatArray
    known_item: IntArray = field(default_factory=_no_items)
    cost: float = float("nan")
    chances: Chances | None = None

    def __post_init__(self) -> None:
        t, k = self.value.size, self.known.size
        if not self.item.shape == self.batch.shape == self.prediction.shape == (t,):
            raise InvalidInputError(
                f"{t} values, but items {self.item.shape}, batches {self.batch.shape} and predictions "
                f"{self.prediction.shape}; give one of each per draw"
            )
        if k + t > self.n_items:
            raise InvalidInputError(
                f"{k} known and {t} drawn cells of {self.n_items} items; each item is answered at most once"
            )
        if self.chances is not None and (k or self.chances.propensity.shape != (t,)):
            raise InvalidInputError(
                f"{t} draws and {k} anchors, but chances of {self.chances.propensity.shape} draws; give one "
                "per draw, and no anchors"
            )
        b = self.n_batches
        if t and (self.batch[0] != 0 or not np.isin(np.diff(self.batch), (0, 1)).all()):
            raise InvalidInputError("batches must be numbered in draw order from 0 without gaps")
        for name in ("unseen_prediction_sum", "unseen_prediction_sum_sq"):
            size = getattr(self, name).shape
            if size != (b,):
                raise InvalidInputError(f"{name} has shape {size} for {b} batches; give one per batch")
        read = self.value[~np.isnan(self.value)]
        for what, array in (("score", read), ("score", self.known), ("prediction", self.prediction)):
            if not ((array >= 0.0) & (array <= 1.0)).all():
                raise InvalidInputError(f"a {what} is outside [0, 1]; rescale scores by their declared range")

    @property
    def n_batches(self) -> int:
        """Number of batches, the last one perhaps not yet complete."""
        return int(self.batch[-1]) + 1 if self.batch.size else 0

    @property
    def pool(self) -> int:
        """Number of items drawn or still to be drawn: all but the anchors."""
        return self.n_items - int(self.known.size)

    @property
    def n_failed(self) -> int:
        """Number of drawn cells that failed for good."""
        return int(np.isnan(self.value).sum())

    def n_missing(self, n_items: int) -> int:
        """Number of items without a score, anchors too, out of so many of the whole benchmark."""
        return self.n_failed + n_items - self.n_items

    def counting_missing(self, score: float, n_items: int) -> Self:
        """The same with a score in the place of every missing one, anchors too.

        Args:
            score: in [0, 1].
            n_items: of the whole benchmark.
        """
        failed = n_items - self.n_items  # anchors
        return replace(
            self,
            n_items=n_items,
            known=np.concatenate([self.known, np.full(failed, score)]),
            known_item=np.concatenate([self.known_item, np.full(failed, -1)]),
            value=np.where(np.isnan(self.value), score, self.value),
        )

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left to draw."""
        return self.value.size == self.pool

    @property
    def drawn_alike(self) -> bool:
        """Whether chances told no item from another: all were as likely, and predicted to score the same."""
        if self.chances is None:
            return False
        left = self.pool - np.arange(self.value.size)
        likely = np.abs(self.chances.propensity * left - 1.0) < _ALIKE
        expected = np.abs(self.chances.unread_sum / left - self.chances.prediction) < _ALIKE
        return bool(likely.all() and expected.all())
