r"""Low-rank logistic model of scores in [0, 1]: what a few answers say about the rest of a benchmark.

.. math:: P_{ij} = \frac1{1 + e^{-u_i \cdot v_j}}, \quad u_i \sim N(m, P^{-1})

The items' factors V come from history and stay frozen; a model's u is refitted by Newton on what it answered,
with the history's models as the prior, so that a model with no answers is an average one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalbudget.errors import InvalidInputError
from evalbudget.races.prediction._logistic import fit_row, fit_rows, sigmoid
from evalbudget.races.prediction._prior import prior_of_factors
from evalbudget.races.prediction._score_table import ScoreTable, table_of
from evalbudget.races.prediction._selection import choose, fit, fold_of
from evalbudget.statistics._bounds import FloatArray, IntArray

_MIN_SHARE = 0.5
"""History that knows less than this share of the items is ignored."""
_ENOUGH = 300
"""Calibration rests on at most about so many models."""
_TABLE = "give a table of models x items with at least one score"


@dataclass(frozen=True, eq=False)
class _White:
    """Coordinates z in which the prior is standard normal: u = m + scale z.

    Attributes:
        V: item factors, shape (n_items, rank).
        offset: logits of the average model, shape (n_items,).
        scale: P = inv(scale scale^T), shape (rank, rank).
        inverse: of scale.
    """

    V: FloatArray
    offset: FloatArray
    scale: FloatArray
    inverse: FloatArray


@dataclass(frozen=True, eq=False)
class FactorModel:
    """Item factors and the prior of the models' factors, frozen.

    Attributes:
        items: ids, for matching, shape (n_items,).
        V: item factors, shape (n_items, rank); one column may be all ones (a model's general level) and one
            the items' easiness.
        prior_mean: m, shape (rank,).
        prior_precision: P, positive definite, shape (rank, rank).
        U: the history's models, shape (n_models, rank); none if they are not known.
        folds: models trained without a part of history, with scores of that part; what calibration rests on.
    """

    items: tuple[str, ...]
    V: FloatArray
    prior_mean: FloatArray
    prior_precision: FloatArray
    U: FloatArray = field(repr=False)
    folds: tuple[Fold, ...] = field(default=(), repr=False)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @cached_property
    def prior_covariance(self) -> FloatArray:
        """Inverse of the prior precision, shape (rank, rank)."""
        return self._white.scale @ self._white.scale.T

    @cached_property
    def _white(self) -> _White:
        lower = np.linalg.cholesky(self.prior_precision)
        scale: FloatArray = np.asarray(np.linalg.inv(lower).T, dtype=np.float64)
        return _White(
            np.ascontiguousarray(self.V @ scale),
            self.V @ self.prior_mean,
            scale,
            np.asarray(lower.T, np.float64),
        )

    @property
    def rank(self) -> int:
        """Number of columns of V."""
        return int(self.V.shape[1])

    def fit(self, item: IntArray, score: FloatArray, *, start: FloatArray | None = None) -> FloatArray:
        """The factors u of a model that answered these items.

        Args:
            item: indices of the items answered, shape (n,).
            score: in [0, 1], fractions allowed, shape (n,).
            start: an earlier u of this model, to begin from; the answer is the same, sooner.

        Returns:
            u, shape (rank,); the prior mean if nothing was answered.
        """
        if not item.size:
            return self.prior_mean.copy()
        white = self._white
        begin = np.zeros(self.rank) if start is None else white.inverse @ (start - self.prior_mean)
        return self.prior_mean + white.scale @ fit_row(white.V[item], white.offset[item], score, begin)

    def fit_rows(self, item: IntArray, scores: FloatArray) -> FloatArray:
        """The factors of many models that answered the same items, such as anchors.

        Args:
            item: indices, shape (n,).
            scores: in [0, 1], nan where missing, shape (n_models, n).

        Returns:
            Shape (n_models, rank).
        """
        white = self._white
        return self.prior_mean + fit_rows(white.V[item], white.offset[item], scores) @ white.scale.T

    def predict(self, u: FloatArray, item: IntArray | None = None) -> FloatArray:
        """Expected scores of a model with factors u.

        Args:
            u: shape (rank,), or (n_models, rank).
            item: indices; default all items.

        Returns:
            Shape (n,), or (n_models, n).
        """
        return sigmoid(u @ (self.V if item is None else self.V[item]).T)

    @classmethod
    def train(
        cls,
        scores: ArrayLike | ScoreTable,
        items: Sequence[str] | None = None,
        *,
        rank: int | None = None,
        ridge: float | None = None,
        seed: int = 0,
    ) -> FactorModel:
        """Train on history.

        Args:
            scores: of earlier models, in [0, 1], nan where missing, shape (n_models, n_items).
            items: ids; default "0", "1" ...
            rank: number of factors beyond level and easiness; clipped below the number of models and
                of items; default by cross-validation.
            ridge: of the item factors; default by cross-validation.
            seed: of the folds of cross-validation.

        Raises:
            InvalidInputError: scores are not a table, have no number in them, or leave [0, 1].
        """
        table = _check_scores(scores)
        names = _check_items(items, table.shape[1])
        choice = choose(table, seed=seed, rank=rank, ridge=ridge)
        fold = fold_of(table.shape[0], np.random.default_rng(seed))
        step = -(-fold.size // _ENOUGH)
        folds = []
        for k in np.unique(fold) if table.shape[0] > 1 else ():
            V, prior = fit(table.take(np.flatnonzero(fold != k)), choice.rank, choice.ridge)
            part = cls(names, V, prior.mean, prior.precision, prior.U)
            left_out = np.flatnonzero(fold == k)[::step]
            folds.append(Fold(part, table.read(left_out).astype(np.float32)))
        V, prior = fit(table, choice.rank, choice.ridge)
        return cls(names, V, prior.mean, prior.precision, prior.U, tuple(folds))

    @classmethod
    def of_factors(
        cls, V: ArrayLike, items: Sequence[str] | None = None, U: ArrayLike | None = None
    ) -> FactorModel:
        """A saved factor file: V and, if known, the history's U, which give the prior.

        Without U, u is taken to be centred at 0 and to give logits a standard deviation of 2.

        Args:
            V: item factors, shape (n_items, rank).
            items: ids; default "0", "1" ...
            U: factors of the history's models, shape (n_models, rank).

        Raises:
            InvalidInputError: shapes do not fit, or a factor is not finite.
        """
        factors = _check_factors("V", V)
        names = _check_items(items, factors.shape[0])
        rank = factors.shape[1]
        if U is None:
            size = float((factors**2).sum(axis=1).mean())
            return cls(
                names, factors, np.zeros(rank), np.eye(rank) * max(size, 1e-12) / 4, np.zeros((0, rank))
            )
        models = _check_factors("U", U)
        if models.shape[1] != rank or not models.shape[0]:
            raise InvalidInputError(f"U has shape {models.shape}, V {factors.shape}; the ranks must be equal")
        prior = prior_of_factors(models)
        return cls(names, factors, prior.mean, prior.precision, models)


@dataclass(frozen=True, eq=False)
class Fold:
    """Factors trained without some of history's models, and what those scored.

    Attributes:
        model: trained on the others.
        scores: of the models left out (of many, every second, third ...), nan where missing, shape
            (n_left_out, n_items).
    """

    model: FactorModel
    scores: NDArray[np.float32]


@dataclass(frozen=True)
class Match:
    """Outcome of matching a model's items with a benchmark's.

    Attributes:
        model: for the benchmark's items, in their order; None if too few are shared.
        reason: one sentence for the user.
    """

    model: FactorModel | None
    reason: str


def match_items(model: FactorModel, ids: Sequence[str]) -> Match:
    """Match history with a benchmark by item id.

    Items that history does not know get the mean factors: they are predicted like an average item.

    Args:
        model: trained on history.
        ids: the benchmark's items.
    """
    place = {name: j for j, name in enumerate(model.items)}
    index = np.array([place.get(name, -1) for name in ids], dtype=np.int64)
    shared = int((index >= 0).sum())
    if not shared or shared < _MIN_SHARE * len(ids):
        reason = f"history ignored: it has {shared} of the {len(ids)} items, fewer than {_MIN_SHARE:.0%}"
        return Match(None, reason)
    return Match(_reindexed(model, tuple(ids), index), f"history has {shared} of the {len(ids)} items")


def _reindexed(model: FactorModel, ids: tuple[str, ...], index: IntArray) -> FactorModel:
    known = index >= 0
    V = np.where(known[:, None], model.V[index], model.V.mean(axis=0))
    folds = []
    for fold in model.folds:
        scores = np.where(known, fold.scores[:, index], np.nan).astype(np.float32)
        folds.append(Fold(_reindexed(fold.model, ids, index), scores))
    return replace(model, items=ids, V=V, folds=tuple(folds))


def _check_scores(scores: ArrayLike | ScoreTable) -> ScoreTable:
    if not isinstance(scores, ScoreTable):
        array = np.asarray(scores)
        array = array if array.dtype.kind == "f" else array.astype(np.float64)
        if array.ndim != 2:
            raise InvalidInputError(f"history has shape {array.shape}; {_TABLE}")
        scores = table_of(array)
    known = np.zeros(scores.shape[0], dtype=np.bool_)
    for first, block in scores.by_models():
        missing = np.isnan(block)
        wrong = ~(missing | ((block >= 0) & (block <= 1)))
        if wrong.any():
            raise InvalidInputError(
                f"history has a score of {block[wrong][0]:g}; "
                "declare their range so that they can be rescaled"
            )
        known[first : first + block.shape[0]] = ~missing.all(axis=1)
    if not known.any():
        raise InvalidInputError(f"history has shape {scores.shape} and 0 scores; {_TABLE}")
    return scores if known.all() else scores.take(np.flatnonzero(known))


def _check_items(items: Sequence[str] | None, n_items: int) -> tuple[str, ...]:
    names = tuple(str(j) for j in range(n_items)) if items is None else tuple(items)
    if len(names) != n_items or len(set(names)) != n_items:
        raise InvalidInputError(
            f"{len(set(names))} different item ids for {n_items} items; give each item an id of its own"
        )
    return names


def _check_factors(name: str, factors: ArrayLike) -> FloatArray:
    array = np.array(factors, dtype=np.float64)
    if array.ndim != 2 or not array.shape[1] or not np.isfinite(array).all():
        raise InvalidInputError(
            f"factors {name} have shape {array.shape}; give a finite table with one row per item or model"
        )
    return array
