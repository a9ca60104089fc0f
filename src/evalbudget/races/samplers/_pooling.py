"""Samplers that predict unread cells from history: frozen item factors, each model's factors refitted."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from typing import Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.races.prediction import FactorModel, match_items
from evalbudget.races.samplers._base import BatchOptions, RacingSampler, Step
from evalbudget.statistics._bounds import FloatArray, IntArray


def content_hash(predictor: FactorModel) -> str:
    """Short hash of everything predictions depend on."""
    digest = hashlib.sha256("\0".join(predictor.items).encode())
    for array in (predictor.V, predictor.prior_mean, predictor.prior_precision):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


class PoolingOptions(BatchOptions, total=False):
    """What every pooling sampler takes besides its own arguments; see :class:`PoolingSampler`."""

    predictor: FactorModel | None
    a: float
    tau: int
    t0: int


class PoolingSampler(RacingSampler):
    r"""UCB-E with an estimate that uses predictions; an author writes :meth:`_learn_batch`.

    ``t0`` batches of every model, taken as one and predicted as an average model; then one batch at a time to
    :math:`\arg\max_i \hat\theta_i + \sqrt{a/|O_i|}`. The factors of the models that have new scores are
    refitted after the first batches and then every ``tau`` batches.

    Args:
        predictor: item factors learned from history; matched with the design's items by id. Without one the
            sampler starts cold: it predicts a model's unread items by the model's own mean.
        a: width of the bonus, on scores in [0, 1].
        tau: batches between two refits; more than there will be leaves the factors as first refitted.
        t0: batches that every model gets first; their items are one draw.
        common: see RacingSampler.

    Attributes:
        history_note: what was done without a history, one sentence; empty with one.

    Raises:
        InvalidInputError: a predictor that knows too few of the items; a negative ``a``, or a
            ``tau`` or ``t0`` below 1; see also RacingSampler.
    """

    def __init__(
        self,
        design: Design,
        *,
        predictor: FactorModel | None = None,
        a: float = 1.0,
        tau: int = 1000,
        t0: int = 1,
        **common: Unpack[BatchOptions],
    ) -> None:
        self.history_note = ""
        if predictor is None:  # all items alike: what a model's unread items are predicted by is its own mean
            predictor = FactorModel.of_factors(np.ones((design.n_items, 1)), design.items)
            self.history_note = (
                "Without a history, a model's unread items are predicted by its own mean so far (--history "
                "names one)."
            )
        match = match_items(predictor, design.items)
        if match.model is None:
            raise InvalidInputError(f"{self.name} cannot use the history: {match.reason}; use race")
        if not (math.isfinite(a) and a >= 0):
            raise InvalidInputError(f"{self.name} got a={a}; give 0 or more")
        if tau < 1:
            raise InvalidInputError(f"{self.name} got tau={tau}; give 1 batch or more")
        if t0 < 1:
            raise InvalidInputError(f"{self.name} got t0={t0}; give 1 batch or more")
        super().__init__(
            design,
            paired=False,
            options={"a": a, "tau": tau, "t0": t0, "predictor": content_hash(match.model)},
            **common,
        )
        self.predictor, self.a, self.tau, self.t0 = match.model, a, tau, t0
        m = design.n_models
        average = self.predictor.predict(self.predictor.prior_mean)
        self._u: list[FloatArray] = [self.predictor.prior_mean] * m
        self._row: list[FloatArray] = [average] * m  # predictions of all items
        self._fitted = [0] * m  # number of the refit that a model's factors are of
        self._fitted_to = [0] * m  # cells the model had been given then
        self._unseen_sum = np.full(m, average.sum())
        self._unseen_sum_sq = np.full(m, (average**2).sum())
        self._batches = 0
        self._past: list[list[tuple[FloatArray, float, float]]] = [[] for _ in range(m)]
        self._estimate = np.full(m, np.nan)
        self._prepare()

    @property
    def minimum_readings(self) -> int:
        """The first batches of each model."""
        return self._n_models * min(self.t0 * self.batch, self._n_items)

    def _prepare(self) -> None:
        """Set up what the author keeps per model."""

    @abstractmethod
    def _learn_batch(self, model: int, item: IntArray, position: int) -> None:
        """Bring the estimate of a model up to date.

        The predictions and their sums over the items not yet seen are still those before the batch.

        Args:
            model: who answered.
            item: the batch.
            position: how many items the model had been given before.
        """

    @property
    def _refits(self) -> int:
        first = self._n_models
        return 0 if self._batches < first else 1 + (self._batches - first) // self.tau

    def _plan(self) -> Step | None:
        return self._largest(self._index, first=self.t0)

    def _index(self) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.asarray(self._estimate + np.sqrt(self.a / self._n_read), dtype=np.float64)

    def _begun(self, step: Step) -> None:
        # a model's factors change nothing until it is asked again, so they are refitted then
        for model in np.unique(step.model).tolist():
            if self._fitted[model] < self._refits:
                self._refit(model, int(self._drawn[model]) - int((step.model == model).sum()))

    def _refit(self, model: int, drawn: int) -> None:
        self._fitted[model] = self._refits
        if drawn == self._fitted_to[model]:
            return  # nothing new
        self._fitted_to[model] = drawn
        order = self._order(model)
        seen = order[:drawn]
        seen = seen[self.is_read(model, seen)]
        self._u[model] = self.predictor.fit(seen, self._value[model, seen], start=self._u[model])
        self._row[model] = row = self.predictor.predict(self._u[model])
        unseen = row[order[drawn:]]
        self._unseen_sum[model] = unseen.sum()
        self._unseen_sum_sq[model] = (unseen**2).sum()

    def _finished(self, step: Step) -> None:
        order = np.argsort(step.model, kind="stable")
        models, begin = np.unique(step.model[order], return_index=True)
        for model, chosen in zip(models.tolist(), np.split(order, begin[1:]), strict=True):
            item = step.item[chosen]
            self._batches += 1
            self._learn_batch(model, item, int(step.position[chosen[0]]))
            f = self._row[model][item]
            self._past[model].append((f, self._unseen_sum[model], self._unseen_sum_sq[model]))
            self._unseen_sum[model] -= f.sum()
            self._unseen_sum_sq[model] -= (f**2).sum()

    def _estimates(self) -> FloatArray:
        return self._estimate

    def _predictions(self, model: int, item: IntArray, batch: IntArray) -> dict[str, FloatArray]:
        past = list(self._past[model])
        known = sum(f.size for f, _, _ in past)
        if item.size > known:  # of the step under way
            f = self._row[model][item[known:]]
            past.append((f, self._unseen_sum[model], self._unseen_sum_sq[model]))
        return self._frozen(past, item, batch)
