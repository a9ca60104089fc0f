"""Samplers that predict unread cells from history: frozen item factors, each model's factors refitted."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.races.prediction import FactorModel, match_items
from evalbudget.races.samplers._base import BatchOptions, RacingSampler
from evalbudget.races.samplers._rounds import Note, Round, Stop, Table, to_change
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


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooled(Note):
    """What the predictions and the estimates of every model rest on, each of shape (n_models,).

    Attributes:
        u: the model's factors.
        row: predictions of all its items.
        fitted: number of the refit that the factors are of.
        fitted_to: cells the model had been given then.
        unseen_sum: of the predictions of items not yet seen.
        unseen_sum_sq: of their squares.
        estimate: what the model is ranked by.
        batches: of all models together, in finished rounds.
    """

    u: list[FloatArray]
    row: list[FloatArray]
    fitted: IntArray
    fitted_to: IntArray
    unseen_sum: FloatArray
    unseen_sum_sq: FloatArray
    estimate: FloatArray
    batches: int = 0


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

    note_kinds: ClassVar[tuple[type, ...]] = (Pooled,)

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

    @property
    def minimum_readings(self) -> int:
        """The first batches of each model."""
        return self._n_models * min(self.t0 * self.batch, self._n_items)

    def start(self, **more: Any) -> Any:
        """Every model is predicted as an average one."""
        m, prior = self._n_models, self.predictor.prior_mean
        average = self.predictor.predict(prior)
        return super().start(
            past=[()] * m,
            u=[prior] * m,
            row=[average] * m,
            fitted=np.zeros(m, np.int64),
            fitted_to=np.zeros(m, np.int64),
            unseen_sum=np.full(m, average.sum()),
            unseen_sum_sq=np.full(m, (average**2).sum()),
            estimate=np.full(m, np.nan),
            **more,
        )

    @abstractmethod
    def _learn_batch(self, table: Table, note: Any, model: int, item: IntArray, position: int) -> None:
        """Bring the estimate of a model up to date, in a note that may be written to.

        The predictions and their sums over the items not yet seen are still those before the batch.

        Args:
            table: of finished rounds.
            note: to be changed.
            model: who answered.
            item: the batch.
            position: how many items the model had been given before.
        """

    def plan(self, table: Table, last: Any) -> Round | Stop:
        """A batch of the model with the largest upper bound."""
        note = self.resumed(table, last)
        news = [] if last is None else by_model(table.model[table.last], table.item[table.last])
        note = to_change(note.but(batches=note.batches + len(news)))
        self._take_in(table, note, news)

        def index() -> FloatArray:
            with np.errstate(divide="ignore"):
                return np.asarray(note.estimate + np.sqrt(self.a / table.n_read), dtype=np.float64)

        answer = self.one_by_one(table, note, index, first=self.t0)
        if isinstance(answer, Round):
            self._freeze(table, note, answer)
        return answer

    def _freeze(self, table: Table, note: Any, planned: Round) -> None:
        """Predict the batches before they are read."""
        # a model's factors change nothing until it is asked again, so they are refitted now
        for model, item in by_model(planned.model, planned.item):
            if note.fitted[model] < self._refits(note.batches):
                self._refit(table, note, model)
            f = note.row[model][item]
            note.past[model] += ((f, note.unseen_sum[model], note.unseen_sum_sq[model]),)

    def _take_in(self, table: Table, note: Any, news: list[tuple[int, IntArray]]) -> None:
        for model, item in news:
            self._learn_batch(table, note, model, item, int(table.drawn[model]) - item.size)
            f = note.past[model][-1][0]
            note.unseen_sum[model] -= f.sum()
            note.unseen_sum_sq[model] -= (f**2).sum()

    def _refits(self, batches: int) -> int:
        first = self._n_models
        return 0 if batches < first else 1 + (batches - first) // self.tau

    def _refit(self, table: Table, note: Any, model: int) -> None:
        note.fitted[model] = self._refits(note.batches)
        drawn = int(table.drawn[model])
        if drawn == note.fitted_to[model]:
            return  # nothing new
        note.fitted_to[model] = drawn
        order = self.order(model)
        seen, unseen = order[:drawn], order[drawn:]
        scores = table.scores(model, seen)
        read = np.isfinite(scores)
        note.u[model] = self.predictor.fit(seen[read], scores[read], start=note.u[model])
        note.row[model] = row = self.predictor.predict(note.u[model])
        note.unseen_sum[model] = row[unseen].sum()
        note.unseen_sum_sq[model] = (row[unseen] ** 2).sum()

    def estimates(self, table: Table, note: Any) -> FloatArray:
        """With predictions."""
        return np.asarray(note.estimate)


def by_model(model: IntArray, item: IntArray) -> list[tuple[int, IntArray]]:
    """The items of each model in a round, in their order."""
    if (model == model[0]).all():
        return [(int(model[0]), item)]
    order = np.argsort(model, kind="stable")
    models, begin = np.unique(model[order], return_index=True)
    return list(zip(models.tolist(), np.split(item[order], begin[1:]), strict=True))
