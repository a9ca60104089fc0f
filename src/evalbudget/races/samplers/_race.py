"""race: predictions from history where there is one, shared items, a posterior that says whom to ask."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.races.prediction import FactorModel, choose_anchors, match_items
from evalbudget.races.samplers._additive import AdditiveEffects
from evalbudget.races.samplers._base import Step
from evalbudget.races.samplers._forecast import Forecast, losses
from evalbudget.races.samplers._pooling import content_hash
from evalbudget.races.samplers._proof_base import LEAST, ProofOptions, ProvingSampler
from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray
from evalbudget.statistics._costs import model_effects

_UNPREDICTED = 0.5  # what is predicted without history
_PSEUDO = 16.0  # readings that a model's expected variance counts as
_FEW = 10.0  # a mean of c readings has (1 + 10/c) times the variance it would have if all were known but it
_GROWTH = 1.25  # factors, and the variances of all models, are renewed when readings grew by this much
_TRIALS = (4, 8)  # anchors after which a history that misleads is found out, before the others are paid for
_PER_ANCHOR = 8  # models of history that it takes for each anchor that it may choose
_ENOUGH = 64  # answers that it takes to judge a history by so few anchors
_SURE = 5.0  # standard deviations behind the leader at which a model is no challenger any more
_STEP_SHARE = 0.01  # of the readings so far, that a step has at least
_ITEM_SPREAD = 0.02  # variance of item effects without history, worth four items


class Race(ProvingSampler):
    r"""The recommended one: asks the leader and those that may still beat it, on the same items.

    With a history of at least eight models for each anchor, every model first answers the anchors, chosen to
    tell most about the benchmark mean; they give a prior of each mean, by a calibration that history went
    through as well. With a smaller history, or none, every model answers the same few random items. From then
    on models get random items, the same ones in the same order:

    - a score less its prediction is a model's effect plus an item's plus noise; items are random effects,
      so that models are compared on the items they share as far as predictions leave item effects at all;
    - the mean of a model is what it scored on the items it read and what the predictions and effects say of
      the others. With anchors it is the mean that the factors predict, refitted to all its answers, as long
      as that is surer: how sure is measured on history's own models with as many answers. A smaller history
      is not trusted that far: it predicts the best model, which differs most from those it knows, too low;
    - the challengers are those expected to beat the leader by most, where not beating it counts 0 (expected
      improvement): models that are near, and models of which little is known. With anchors, which say as
      much of one as of another, they are the nearest in standard deviations. Leader or challenger, whichever
      is known less well, is asked next. A model's readings at most double, and a step has ``batch`` cells, or
      one hundredth of the readings so far if that is more.

    When costs are weighed (:meth:`weigh_costs`), :math:`c_m` being what a request of model m costs over the
    typical one (:func:`~evalbudget.statistics._costs.model_effects`, from finished steps), challengers are
    taken by expected improvement over :math:`c_m^\gamma`, or, where they are ranked by their distance z, by
    :math:`z^2/2 + \gamma \ln c_m`, the logarithm of the same, with :math:`\gamma = 1/(1 + \ln M)` for M
    models as for the worst of M items (``eb-bernstein``); a whole power would put off a best model that is
    dear for too long. Of leader and challenger the one with the larger :math:`V_m / \sqrt{c_m}` is asked, so
    that readings end up as :math:`n_1/n_2 = \sqrt{v_1 c_2 / (v_2 c_1)}`. The proof is as before: all
    contenders read the same items, whatever they cost.

    A history whose predictions of the first four anchors, the first eight, or all that everybody answers
    first are no better than a constant is dropped, which ``history_note`` says; the race goes on without, and
    the anchors count as any other items that everybody answered first.

    All this steers only. A model that falls five standard deviations behind is no challenger any more, and
    once the leader has none left, what is left of the budget goes to the proof: all models not yet proved to
    be worse read on together, as in ``paired-eprocess``, until one is proved the best, exactly equal ones are
    left, or the budget is used up. The proof takes its place along the shared order and counts all that was
    read before. What is reported about models must come from estimators, which get the random draws with
    predictions frozen before each.

    Args:
        predictor: item factors learned from history, matched with the design's items by id; None, or one
            that knows too few of them, is a race without history.
        anchors: items everybody answers first, with a history of at least eight models for each.
        first: random items everybody answers first otherwise.
        batch: cells in a step.
        until_proved: spend on the proof from the start, which takes fewer readings to its end; who leads is
            known less well before that.
        common: see ProvingSampler.

    Attributes:
        history_note: what became of the history, one sentence; empty without. It may change while the race
            goes on.

    Raises:
        InvalidInputError: an option is out of range; see also RacingSampler.
    """

    name = "race"
    _common = ProofOptions

    def __init__(
        self,
        design: Design,
        *,
        predictor: FactorModel | None = None,
        anchors: int = 16,
        first: int = 4,
        batch: int = 32,
        until_proved: bool = False,
        **common: Unpack[ProofOptions],
    ) -> None:
        for option, value in (("anchors", anchors), ("first", first)):
            if value < 1:
                raise InvalidInputError(f"race got {option}={value}; give 1 item or more")
        match = None if predictor is None else match_items(predictor, design.items)
        self.predictor = None if match is None else match.model
        self.history_note = "" if match is None else match.reason
        super().__init__(
            design,
            batch=batch,
            options={
                "predictor": None if self.predictor is None else content_hash(self.predictor),
                "anchors": anchors,
                "first": first,
                "until_proved": until_proved,
            },
            **common,
        )
        self.until_proved = until_proved
        m, n = self._n_models, self._n_items
        self._first_items = min(first, n)
        self._at_random = self._order(0)
        known, wanted = 0 if self.predictor is None else self.predictor.U.shape[0], _PER_ANCHOR * anchors
        if self.predictor is not None and known < wanted:
            self.history_note += (
                f"; it tells of {known:,} models, and {wanted:,} are needed to choose the first items by it"
            )
        if self.predictor is not None and known >= wanted:
            self._n_anchors = self._first_items = min(anchors, n)
            chosen = choose_anchors(self.predictor, self._n_anchors)
            self._shared = np.concatenate([chosen, self._at_random[~np.isin(self._at_random, chosen)]])
        self._forecast: Forecast | None = None
        self._skipped = 0  # items of the order that say nothing about effects: anchors, as long as predicted
        self._effects, self._residual, self._predicted_unread = self._no_effects()
        self._fitted_at = np.full(m, self._n_anchors)
        self._past: list[list[tuple[FloatArray, float, float]]] = [[] for _ in range(m)]
        self._noise = 0.25
        self._item_spread = _ITEM_SPREAD
        self._own_noise = np.full(m, 0.25)
        self._renew_at = 0.0
        self._mean = np.full(m, np.nan)
        self._variance = np.ones(m)
        self._chased = np.ones(m, dtype=bool)  # leader and challengers
        self._log_cost = np.zeros(m)  # of a reading of each model, over the typical one
        self._cost_power = 1.0 / (1.0 + math.log(m))
        self._costs_at = 0.0  # readings at which costs are learned again
        self._paid_steps: list[tuple[IntArray, IntArray, FloatArray]] = []

    @property
    def minimum_readings(self) -> int:
        """The first items of every model."""
        return self._n_models * self._first_items

    # what to ask

    def _plan(self) -> Step | None:
        begun = int(self._drawn.max())
        if self._remaining().size > 1 and begun < self._first_items:
            stops = [k for k in _TRIALS if k < self._n_anchors and self._n_models * k >= _ENOUGH]
            stops.append(self._first_items)
            return self._draw(self._remaining(), min(k for k in stops if k > begun) - begun)
        drawable = self._to_steer()
        return self._draw(*self._duels(drawable)) if drawable.size else self._prove(LEAST)

    def _to_steer(self) -> IntArray:
        """Leader and challengers that have items left; none once it is time to prove."""
        steering = self._in & self._chased
        if self.until_proved or steering.sum() <= 1:
            steering[:] = False
        return np.flatnonzero(steering & (self._drawn < self._n_items))

    def _duels(self, drawable: IntArray) -> tuple[IntArray, IntArray]:
        """Leader and challengers that fill a step, with the number of items of each."""
        leader = self._leading()
        promise = self._promise(leader)
        others = drawable[drawable != leader]
        others = others[np.lexsort((self._rank[others], -promise[others]))]
        leader_left = bool(self._drawn[leader] < self._n_items)
        room = max(self.batch, _STEP_SHARE * float(self._drawn.sum()))
        uncertainty = self._variance * np.exp(-0.5 * self._log_cost)
        items: dict[int, int] = {}
        for challenger in others.tolist():
            if room <= sum(items.values()):
                break
            if leader_left and leader not in items and uncertainty[leader] >= uncertainty[challenger]:
                items[leader] = self._portion(leader)
            if not leader_left or uncertainty[challenger] >= uncertainty[leader]:
                items[challenger] = self._portion(challenger)
        if not items:
            asked = leader if leader_left else int(others[0])
            items[asked] = self._portion(asked)
        return np.array(list(items)), np.array(list(items.values()))

    def _portion(self, model: int) -> int:
        drawn = int(self._drawn[model])
        return min(max(drawn, self._first_items, 1), max(self.batch, drawn // 10))

    def _leading(self) -> int:
        among = self._in & self._chased
        among = among if among.any() else self._in
        return self._first(np.where(among, self._mean, -np.inf), among)

    def _behind(self, leader: int) -> FloatArray:
        """Distance to the leader in standard deviations, shape (n_models,)."""
        spread = np.sqrt(self._variance + self._variance[leader])
        return np.asarray((self._mean[leader] - self._mean) / np.maximum(spread, 1e-9))

    def _promise(self, leader: int) -> FloatArray:
        """What speaks for each model as a challenger, the largest for the first one, shape (n_models,).

        By how much it is expected to beat the leader, counting 0 if it does not. With anchors all are known
        equally well from the start, and the nearest in standard deviations take fewer readings.
        """
        behind = self._behind(leader)
        if self._forecast is not None and self._n_anchors:
            return -self._behind_per_cost(behind)
        from scipy.special import ndtr  # takes long to import, and most samplers do without

        spread = np.sqrt(self._variance + self._variance[leader])
        density = np.exp(-(behind**2) / 2.0) / np.sqrt(2.0 * np.pi)
        return np.asarray(
            spread * (density - behind * ndtr(-behind)) * np.exp(-self._cost_power * self._log_cost)
        )

    def _behind_per_cost(self, behind: FloatArray) -> FloatArray:
        if not self._log_cost.any():
            return behind
        return np.asarray(np.sign(behind) * behind**2 / 2.0 + self._cost_power * self._log_cost)

    # what was learned

    def _begun(self, step: Step) -> None:
        if self.predictor is None or (self._forecast is None and self._n_anchors):
            return
        first, size = np.unique(step.model, return_counts=True)
        for model, count in zip(first.tolist(), size.tolist(), strict=True):
            if self._forecast is None:  # nothing is predicted before history is tried
                self._past[model].append((np.zeros(count), 0.0, 0.0))
                continue
            unread = self._order(model)[int(self._drawn[model]) - count :]
            f = self._forecast.row(model)[unread]
            self._past[model].append((f[:count], float(f.sum()), float((f * f).sum())))

    def _finished(self, step: Step) -> None:
        if self.weighs_costs:
            self._learn_costs(step)
        models: list[int] = np.unique(step.model).tolist()
        if self.predictor is not None and self._forecast is None:
            self._start(self.predictor)
        if self.predictor is None or self._drawn.max() > self._n_anchors:
            for model in models:
                self._take_in(model)
            self._solve(models)
        self._weigh()
        if (self._in & self._chased).any():
            self._chased &= self._behind(self._leading()) <= _SURE
        if not self._to_steer().size:
            self._drop()

    def _learn_costs(self, step: Step) -> None:
        self._paid_steps.append((step.model, step.item, self._costs_of(step)))
        if (total := float(self._drawn.sum())) >= self._costs_at:
            model, item, cost = (np.concatenate(column) for column in zip(*self._paid_steps, strict=True))
            self._paid_steps = [(model, item, cost)]
            self._log_cost = model_effects(model, item, cost, self._n_models)
            self._costs_at = _GROWTH * total

    def _no_effects(self) -> tuple[AdditiveEffects, Any, FloatArray]:
        m, pool = self._n_models, self._n_items - self._skipped
        return (
            AdditiveEffects(m, pool),
            np.zeros((m, pool), dtype=np.float32),
            np.full(m, _UNPREDICTED * pool),
        )

    def _start(self, predictor: FactorModel) -> None:
        """Predict once all have answered the first items, unless history does it worse than a constant."""
        n_read = int(self._drawn.max())
        item = self._order(0)[:n_read].astype(np.int64)
        scores = np.stack([self._scores_at(model, item) for model in range(self._n_models)])
        of_history, of_constant = losses(predictor, item, scores)
        if of_history >= of_constant:
            self._drop_history(item, of_history, of_constant)
            return
        if n_read < self._n_anchors:
            return
        forecast = Forecast(predictor, item, scores)
        self._forecast, self._skipped = forecast, self._n_anchors
        self._effects, self._residual, self._predicted_unread = self._no_effects()
        self._noise, self._item_spread = float(self._forecast.noise.mean()), 0.1 * _ITEM_SPREAD
        self._own_noise = self._forecast.noise.copy()

    def _drop_history(self, item: IntArray, of_history: float, of_constant: float) -> None:
        self.predictor = None
        self.history_note = (
            f"history dropped: on the {item.size} items that every model answered first, its predictions are "
            f"no better than a constant's (off by {of_history:.2f} against {of_constant:.2f})"
        )
        if self._n_anchors:
            self._n_anchors = self._first_items = item.size
            self._shared = np.concatenate([item, self._at_random[~np.isin(self._at_random, item)]])
            self._begin_anew()  # anchors adopted from an earlier run may have begun it, in another order

    def _take_in(self, model: int) -> None:
        """Residuals of a model's new scores; of all its scores when its factors are refitted."""
        k, begin, end = self._skipped, int(self._effects.length[model]), int(self._drawn[model])
        order = self._order(model)
        item = order[k + begin : end]
        if self._forecast is None:
            self._predicted_unread[model] -= _UNPREDICTED * item.size
            self._extend(model, begin, self._scores_at(model, item) - _UNPREDICTED)
        elif begin and end < _GROWTH * self._fitted_at[model]:
            f = self._forecast.row(model)
            self._predicted_unread[model] = f[order[end:]].sum()
            self._extend(model, begin, self._scores_at(model, item) - f[item])
        else:
            given = order[:end].astype(np.int64)
            read = self.is_read(model, given)
            residual = np.full(end, np.nan)
            residual[read] = self._forecast.refit(model, given[read], self._value[model, given[read]])
            self._predicted_unread[model] = self._forecast.row(model)[order[end:]].sum()
            self._fitted_at[model] = end
            self._extend(model, 0, residual[k:], self._residual[model, :begin].astype(np.float64))

    def _extend(self, model: int, begin: int, residual: FloatArray, old: FloatArray | None = None) -> None:
        stored = residual.astype(np.float32)
        self._residual[model, begin : begin + residual.size] = stored
        self._effects.add(model, stored.astype(np.float64), begin, old)

    def _solve(self, models: list[int]) -> None:
        self._effects.ratio = self._noise / self._item_spread
        self._effects.solve()
        total = float(self._effects.count.sum())
        if total < self._renew_at:
            for model in models:
                self._renew_noise(model)
            return
        for _ in range(2 if self._renew_at else 10):
            self._renew_components()
            self._effects.ratio = self._noise / self._item_spread
            self._effects.solve()
        self._renew_at = _GROWTH * total

    def _renew_components(self) -> None:
        """One step of EM for the variances of noise and of item effects."""
        effects = self._effects
        active = np.flatnonzero(effects.count)
        readers = effects.readers()
        item = effects.item[: readers.size]
        squares = sum(self._renew_noise(int(model)) for model in active)
        share = readers / (readers + effects.ratio)
        free = max(0.0, float(effects.count.sum()) - active.size - float(share.sum()))
        known = 4.0 if self._forecast is None else 64.0
        self._noise = max((squares + known * self._noise) / (free + known), 1e-12)
        shared = readers >= 2
        moments = (item**2 + self._noise / (readers + effects.ratio))[shared]
        weight = share[shared]
        prior = _ITEM_SPREAD if self._forecast is None else 0.1 * _ITEM_SPREAD
        self._item_spread = float((4.0 * prior + (moments * weight).sum()) / (4.0 + weight.sum()))

    def _renew_noise(self, model: int) -> float:
        """Variance of the model's scores about their expectation; returns its sum of squares."""
        length = int(self._effects.length[model])
        left = self._residual[model, :length] - self._effects.model[model] - self._effects.item[:length]
        left = left[~np.isnan(left)]
        squares = float(left @ left)
        expected = self._noise if self._forecast is None else float(self._forecast.noise[model])
        self._own_noise[model] = (_PSEUDO * expected + squares) / (_PSEUDO + left.size)
        return squares

    def _weigh(self) -> None:
        """Posterior mean and variance of every model's benchmark mean."""
        effects, n = self._effects, self._n_items
        unread = n - self._skipped - effects.length
        size = np.maximum(n - (self._drawn - self._n_read), 1)
        effect_so_far = np.concatenate([[0.0], np.cumsum(effects.item)])
        item_effects = effect_so_far[-1] - effect_so_far[effects.length]
        mean = (self._sum + self._predicted_unread + unread * effects.model + item_effects) / size
        count = np.maximum(effects.count, 1)
        noise = self._own_noise + self._noise * effects.shared_uncertainty()
        variance = noise / count * (unread / size) * (1.0 + _FEW / count)
        variance[self._drawn >= n] = 0.0
        told = effects.count > 0
        if self._forecast is None:
            centre = float(mean[told].mean()) if told.any() else 0.5
            self._mean, self._variance = np.where(told, mean, centre), np.where(told, variance, 1.0)
        else:
            self._combine(self._forecast, mean, variance, told | (self._drawn >= n))

    def _combine(self, forecast: Forecast, mean: FloatArray, variance: FloatArray, told: BoolArray) -> None:
        """What history predicts from a model's answers, or what the answers say, whichever is surer.

        How sure a prediction is, history's own models tell. Nothing is learned about that from the race:
        the models that were asked most are those that looked good, and would shift what is expected of the
        others downwards.
        """
        # both rest on the same scores, so they are not averaged: the less certain one adds next to nothing,
        # and once the data alone say more, a wrong prediction must not outlast them
        surer = variance < forecast.variance
        # without anchors history is small: its predictions only stand in for what a model has not read
        alone = told & (surer if self._n_anchors else True)
        self._mean = np.where(alone, mean, forecast.mean)
        self._variance = np.where(alone, variance, forecast.variance)

    def _estimates(self) -> FloatArray:
        return self._mean

    def _predictions(self, model: int, item: IntArray, batch: IntArray) -> dict[str, FloatArray]:
        if self._forecast is None:
            return super()._predictions(model, item, batch)
        return self._frozen(self._past[model], item, batch)
