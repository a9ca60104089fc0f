r"""Low-rank logistic model of scores in [0, 1]: what a few answers say about the rest of a benchmark.

.. math:: P_{ij} = \frac1{1 + e^{-u_i \cdot v_j}}, \quad u_i \sim N(m, P^{-1})

The items' factors V come from history and stay frozen; a model's u is refitted by Newton on what it answered,
with the history's models as the prior, so that a model with no answers is an average one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.confidence.bounds import FloatArray, IntArray
from evalbudget.errors import InvalidInputError
from evalbudget.prediction.logistic import fit_row, sigmoid
from evalbudget.prediction.prior import fit_prior, prior_of_factors
from evalbudget.prediction.training import train


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
    """

    items: tuple[str, ...]
    V: FloatArray
    prior_mean: FloatArray
    prior_precision: FloatArray
    U: FloatArray = field(repr=False)

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

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
        return fit_row(self.V[item], score, self.prior_mean, self.prior_precision, start)

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
        scores: ArrayLike,
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
            rank: number of factors beyond level and easiness; clipped at n_models - 1; default by
                cross-validation.
            ridge: of the item factors; default by cross-validation.
            seed: of the folds of cross-validation.

        Raises:
            InvalidInputError: scores are not a table, have no number in them, or leave [0, 1].
        """
        table = _check_scores(scores)
        names = _check_items(items, table.shape[1])
        rank = 2 if rank is None else rank
        trained = train(table, min(rank, table.shape[0] - 1), 1.0 if ridge is None else ridge)
        spread = np.r_[1.0, 0.25, np.ones(trained.V.shape[1] - 2)]
        prior = fit_prior(table, trained.V, trained.U, spread)
        return cls(names, trained.V, prior.mean, prior.precision, prior.U)

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

    def for_items(self, ids: Sequence[str]) -> FactorModel | None:
        """This model for another benchmark, items matched by id; None if too few are shared."""
        return match_items(self, ids).model


@dataclass(frozen=True)
class Match:
    """Outcome of matching a model's items with a benchmark's.

    Attributes:
        model: for the benchmark's items, in their order; None if too few are shared.
        shared: how many of the benchmark's items the history knows.
        reason: one sentence for the user.
    """

    model: FactorModel | None
    shared: int
    reason: str


def match_items(model: FactorModel, ids: Sequence[str], *, min_share: float = 0.5) -> Match:
    """Match history with a benchmark by item id.

    Items that history does not know get the mean factors: they are predicted like an average item.

    Args:
        model: trained on history.
        ids: the benchmark's items.
        min_share: history is ignored if it knows less than this share of them.
    """
    place = {name: j for j, name in enumerate(model.items)}
    index = np.array([place.get(name, -1) for name in ids], dtype=np.int64)
    shared = int((index >= 0).sum())
    if not shared or shared < min_share * len(ids):
        return Match(
            None,
            shared,
            f"history ignored: it has {shared} of the {len(ids)} items, fewer than {min_share:.0%}",
        )
    V = np.where((index >= 0)[:, None], model.V[index], model.V.mean(axis=0))
    matched = replace(model, items=tuple(ids), V=V)
    return Match(matched, shared, f"history has {shared} of the {len(ids)} items")


def _check_scores(scores: ArrayLike) -> FloatArray:
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or np.isnan(table).all():
        raise InvalidInputError(
            f"history has shape {table.shape} and {int((~np.isnan(table)).sum())} scores; "
            "give a table of models x items with at least one score"
        )
    seen = table[~np.isnan(table)]
    if not ((seen >= 0) & (seen <= 1)).all():
        outside = seen[~((seen >= 0) & (seen <= 1))][0]
        raise InvalidInputError(
            f"history has a score of {outside:g}; declare their range so that they can be rescaled"
        )
    return table[~np.isnan(table).all(axis=1)]


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
