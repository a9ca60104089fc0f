"""visit: the scores of new models from few items, given what other models scored on them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from evalbudget.design import Cell, Design
from evalbudget.errors import InvalidInputError
from evalbudget.races._draws import Chances, ModelDraws
from evalbudget.races.estimates import benchmark_mean
from evalbudget.races.prediction import FactorModel, match_items
from evalbudget.races.prediction._outlook import Outlook
from evalbudget.races.samplers._base import RacingOptions, RacingSampler, Step
from evalbudget.races.samplers._pooling import content_hash
from evalbudget.statistics._bounds import FloatArray, IntArray

_SHARE = 0.2  # of what a model has read, that its next batch has at least


@dataclass
class _Batch:
    """The items of a model's next batch, in draw order, and what was known of them before it."""

    item: IntArray
    chances: Chances


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
        m = self._n_models
        self._outlooks = [Outlook(self.predictor, self._n_items) for _ in range(m)]
        self._past: list[list[Chances]] = [[] for _ in range(m)]
        self._next_batch: dict[int, _Batch] = {}
        self._propensities: dict[tuple[int, int], float] = {}
        self._precise = np.zeros(m, dtype=bool)

    @property
    def history_note(self) -> str:
        """What became of the history."""
        dropped = [self.design.models[k] for k, outlook in enumerate(self._outlooks) if outlook.dropped]
        if not dropped:
            return self._matched
        told = f"dropped for {', '.join(dropped)}, whose scores their own mean predicts better"
        return f"{self._matched}; {told}"

    # what to ask

    def _plan(self) -> Step | None:
        if self._stop_if_over():
            return None
        drawable = self._drawable()
        models = drawable[~self._precise[drawable]]
        if not models.size:
            self.stop_reason = f"every model's mean is known to within {self.half_width:g}"
            return None
        first = models[self._drawn[models] == self._drawn[models].min()]
        self._next_batch = {model: self._drawn_batch(model) for model in first.tolist()}
        item = np.stack([chosen.item for chosen in self._next_batch.values()])  # batches of one size
        position = np.arange(item.shape[1])[:, None] + self._drawn[first]
        return Step(np.tile(first, item.shape[1]), item.T.ravel(), position.ravel())

    def _drawn_batch(self, model: int) -> _Batch:
        """The next items of a model, drawn one after another with the probabilities of this moment."""
        drawn = int(self._drawn[model])
        unread = np.sort(self._order(model)[drawn:]).astype(np.int64)
        count = min(max(self.batch, int(_SHARE * drawn)), unread.size)
        p = self._outlooks[model].expected[unread]
        sigma = np.sqrt(p * (1.0 - p))
        q = (1.0 - self.tau) * sigma / sigma.sum() + self.tau / unread.size
        # items in the order of exponential times with rates q: the same as one draw after another
        times = np.random.default_rng([self.seed, 3, model, drawn]).exponential(size=unread.size) / q
        order = np.argsort(times, kind="stable")[:count]
        return _Batch(unread[order], Chances.of(p, q, order))

    def _begun(self, step: Step) -> None:
        for model, chosen in self._next_batch.items():
            self._past[model].append(chosen.chances)
            drawn = int(self._drawn[model])
            order = self._order(model)
            begin = drawn - chosen.item.size
            rest = order[begin:]
            rest = rest[~np.isin(rest, chosen.item)]
            order[begin:drawn], order[drawn:] = chosen.item, rest
            shares = zip(chosen.item.tolist(), chosen.chances.propensity.tolist(), strict=True)
            self._propensities.update(((model, item), q) for item, q in shares)
        self._next_batch = {}

    def _finished(self, step: Step) -> None:
        for model in np.unique(step.model).tolist():
            item = step.item[step.model == model]
            item = item[self.is_read(model, item)]
            self._outlooks[model].learn(item, self._value[model, item])
            if self.half_width is not None and self._in[model]:
                estimate = benchmark_mean(
                    self.draws(model), bounds=self.score_range, simultaneous=self._n_models
                )
                self._precise[model] = estimate.confidence_interval(0.95).half_width <= self.half_width

    def _propensity(self, cell: Cell) -> float | None:
        return self._propensities.get((cell.model, cell.item))

    # what is known

    def _estimates(self) -> FloatArray:
        return np.array([benchmark_mean(self.draws(model)).value for model in range(self._n_models)])

    def draws(self, model: int) -> ModelDraws:
        """The model's cells in draw order, with their chances."""
        given = super().draws(model)
        return replace(given, chances=Chances.joined(self._past[model], given.value.size))
