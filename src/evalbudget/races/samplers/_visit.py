"""visit: the scores of new models from few items, given what other models scored on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.races._draws import Chances
from evalbudget.races.estimates import benchmark_mean
from evalbudget.races.prediction import FactorModel, match_items
from evalbudget.races.prediction._outlook import Outlook
from evalbudget.races.samplers._base import RacingOptions, RacingSampler
from evalbudget.races.samplers._pooling import by_model, content_hash
from evalbudget.races.samplers._rounds import Note, Round, Stop, Table, draws_of
from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray

_SHARE = 0.2  # of what a model has read, that its next batch has at least


@dataclass(frozen=True, kw_only=True, eq=False)
class Visits(Note):
    """What is known of every model.

    Attributes:
        outlooks: what it is expected to score.
        is_precise: whether its mean is known well enough, shape (n_models,).
    """

    outlooks: list[Outlook]
    is_precise: BoolArray


class Visit(RacingSampler):
    r"""For each new model by itself: draws the items whose scores are least certain, and says how likely.

    A batch of unread items is drawn one after another, without replacement, by

    .. math:: q_j \propto (1 - \tau) \frac{\sigma_j}{\sum_k \sigma_k} + \frac{\tau}{|U|}, \quad
              \sigma_j = \sqrt{p_j (1 - p_j)},

    p being what history and the model's own earlier answers predict
    (:class:`~evalbudget.races.prediction._outlook.Outlook`): that is the standard deviation of a pass or a
    failure, and of other scores it is in proportion. What is uniform in it bounds 1/q, and with that the
    guaranteed interval. Predictions and probabilities are renewed after each batch, and each draw's
    probability is its request's ``propensity``. The estimate weighs scores by it
    (:mod:`evalbudget.statistics._uneven_draws`); predictions that are wrong make it less sure, not invalid. A
    history that predicts a model worse than the model's own mean is dropped, for that model, which
    ``history_note`` says; from then on all its unread items are alike, as they are without history.

    It departs from the published rule (FAQ), which draws with replacement, weighs all draws alike, and whose
    interval is too short: items read count as they are, a sum that ends at the exact mean, draws weigh by the
    variance expected of them, and predictions take into account how little is known of the model.

    All models get batches of the same sizes: ``batch`` items at first, then a fifth of what they have read.

    Args:
        predictor: item factors learned from history, matched with the design's items by id; None, or one that
            knows too few of them, is uniform draws.
        batch: items a model is given at a time, at least.
        tau: share of uniform draws, in (0, 1].
        half_width: a model is asked no more once its mean is known to within this, in units of the scores, by
            the interval that holds for all models at once and at every moment; None to go on.
        common: see RacingSampler.

    Attributes:
        history_note: what became of the history, one sentence; empty without. It may change.

    Raises:
        InvalidInputError: tau or half_width is out of range; see also RacingSampler.

    References:
        arXiv 2601.20251 (FAQ).
    """

    name = "visit"
    takes_one = True
    note_kinds = (Visits, Chances, Outlook)
    _common = RacingOptions

    def __init__(
        self,
        design: Design,
        *,
        predictor: FactorModel | None = None,
        batch: int = 4,
        tau: float = 0.5,
        half_width: float | None = None,
        **common: Unpack[RacingOptions],
    ) -> None:
        if not 0.0 < tau <= 1.0:
            raise InvalidInputError(f"visit got tau={tau}; give a share above 0 and up to 1")
        if half_width is not None and not (math.isfinite(half_width) and half_width > 0.0):
            raise InvalidInputError(f"visit got half_width={half_width}; give a number above 0")
        match = None if predictor is None else match_items(predictor, design.items)
        self.predictor = None if match is None else match.model
        self._matched = "" if match is None else match.reason
        super().__init__(
            design,
            batch=batch,
            paired=False,
            options={
                "tau": tau,
                "half_width": half_width,
                "predictor": None if self.predictor is None else content_hash(self.predictor),
            },
            **common,
        )
        self.tau, self.half_width = tau, half_width

    @property
    def history_note(self) -> str:
        """What became of the history."""
        outlooks = self._now()[1].outlooks
        dropped = [name for name, one in zip(self.design.models, outlooks, strict=True) if one.dropped]
        if not dropped:
            return self._matched
        told = f"dropped for {', '.join(dropped)}, whose scores their own mean predicts better"
        return f"{self._matched}; {told}"

    def start(self, **more: Any) -> Any:
        """All models are alike."""
        m = self._n_models
        return super().start(
            outlooks=[Outlook(self.predictor, self._n_items)] * m,
            chances=[()] * m,
            is_precise=np.zeros(m, dtype=bool),
            **more,
        )

    def plan(self, table: Table, last: Visits | None) -> Round | Stop:
        """A batch of every model that has had the fewest, drawn by what is known of it."""
        note: Visits = self.resumed(table, last)
        if last is not None:
            note = self._learned(table, note)
        if reason := self.why_over(table, note):
            return Stop(reason, note)
        drawable = self.drawable(table, note)
        models = drawable[~note.is_precise[drawable]]
        if not models.size:
            return Stop(f"every model's mean is known to within {self.half_width:g}", note)
        first = models[table.drawn[models] == table.drawn[models].min()]
        drawn = [self._drawn_batch(table, note, model) for model in first.tolist()]
        chances = list(note.chances)
        for model, (_, of_batch) in zip(first.tolist(), drawn, strict=True):
            chances[model] += (of_batch,)
        item = np.stack([item for item, _ in drawn])  # batches of one size
        return Round(
            np.tile(first, item.shape[1]),
            item.T.ravel(),
            note.but(chances=chances),
            np.stack([of_batch.propensity for _, of_batch in drawn]).T.ravel(),
        )

    def _drawn_batch(self, table: Table, note: Visits, model: int) -> tuple[IntArray, Chances]:
        """The next items of a model, drawn one after another with the probabilities of this moment."""
        drawn = int(table.drawn[model])
        is_drawn = np.zeros(self._n_items, dtype=bool)
        is_drawn[table.item[table.rows_of(model)]] = True
        unread = np.flatnonzero(~is_drawn)
        count = min(max(self.batch, int(_SHARE * drawn)), unread.size)
        p = note.outlooks[model].expected[unread]
        sigma = np.sqrt(p * (1.0 - p))
        q = (1.0 - self.tau) * sigma / sigma.sum() + self.tau / unread.size
        # items in the order of exponential times with rates q: the same as one draw after another
        times = np.random.default_rng([self.seed, 3, model, drawn]).exponential(size=unread.size) / q
        order = np.argsort(times, kind="stable")[:count]
        return unread[order], Chances.of(p, q, order)

    def _learned(self, table: Table, note: Visits) -> Visits:
        outlooks, is_precise = list(note.outlooks), note.is_precise.copy()
        for model, item in by_model(table.model[table.last], table.item[table.last]):
            scores = table.scores(model, item)
            read = np.isfinite(scores)
            outlooks[model] = outlooks[model].after(self.predictor, item[read], scores[read])
            if self.half_width is not None and note.is_in[model]:
                draws = draws_of(table, note, model)
                estimate = benchmark_mean(draws, bounds=self.score_range, simultaneous=self._n_models)
                is_precise[model] = estimate.confidence_interval(0.95).half_width <= self.half_width
        return note.but(outlooks=outlooks, is_precise=is_precise)

    # what is known

    def estimates(self, table: Table, note: Any) -> FloatArray:
        """Weighted by the chances of the draws."""
        found = [benchmark_mean(draws_of(table, note, m)).value for m in range(self._n_models)]
        return np.array(found)
