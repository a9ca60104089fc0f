"""race: predictions from history where there is one, shared items, a posterior that says whom to ask."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.races.prediction import FactorModel, choose_anchors, match_items
from evalbudget.races.prediction._calibration import Calibration
from evalbudget.races.samplers._additive import AdditiveEffects
from evalbudget.races.samplers._forecast import Forecast, losses
from evalbudget.races.samplers._pooling import by_model, content_hash
from evalbudget.races.samplers._proof_base import LEAST, ProofOptions, Proving, ProvingSampler
from evalbudget.races.samplers._rounds import Frozen, Round, Stop, Table, to_change
from evalbudget.statistics._best_proof import BestProof
from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray
from evalbudget.statistics._costs import model_effects

_UNPREDICTED = 0.5  # what is predicted without history
_FEW = 10.0  # a mean of c readings has (1 + 10/c) times the variance it would have if all were known but it
_GROWTH = 1.25  # a model's factors, and costs, are renewed when readings grew by this much
_TRIALS = (4, 8)  # anchors after which a history that misleads is found out, before the others are paid for
_PER_ANCHOR = 8  # models of history that it takes for each anchor that it may choose
_ENOUGH = 64  # answers that it takes to judge a history by so few anchors
_SURE = 5.0  # standard deviations behind the leader at which a model is no challenger any more
_MANY = 100  # models; with more, rounds filled as expected find the best later
_BATCH, _BATCH_OF_MANY = 128, 32  # cells that a round has at least
_PART = 24  # of all readings so far, one in so many is what a round has at least
_SHARE = 0.01  # the same where models are many
_MOST = 2  # times the readings so far, that a round has at most
_STEPS = 32  # in which a round is filled, or fewer
_FEWEST = 12  # cells, or items where all there is to do is to prove: so many make a round


@dataclass(frozen=True, kw_only=True, eq=False)
class Known(Proving):
    """What is known of every model of the race; arrays have the shape (n_models,).

    Attributes:
        order: of the items, anchors first.
        history_note: what became of the history.
        has_history: whether there is one, and it was not dropped.
        n_first: items that everybody answers first.
        forecast: what history says, once the anchors are read.
        effects: of models and items, from the items after the anchors if there is a forecast.
        predicted_unread: sum of the predictions of the items not read.
        fitted_at: items read when the forecast was fitted to a model last.
        mean: of the posterior.
        variance: of the posterior.
        is_chased: leader and challengers.
        log_cost: of a reading, over the typical one.
        costs_at: readings at which costs are learned again.
    """

    order: IntArray
    history_note: str
    has_history: bool
    n_first: int
    forecast: Forecast | None = None
    effects: AdditiveEffects
    predicted_unread: FloatArray
    fitted_at: IntArray
    mean: FloatArray
    variance: FloatArray
    is_chased: BoolArray
    log_cost: FloatArray
    costs_at: float = 0.0


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
      is known less well, is asked next.

    Of up to 100 models a round has ``batch`` cells, or one in 24 of the readings so far if that is more; at
    most twice these readings, and a third of what leader and challengers have left. It is filled in steps of
    few items: with means as they are, and variances as they will be once the steps before have been answered.
    With more models that finds the best later (1,000 models x 9,574 items). There a round goes to whom one
    would ask first, whose readings at most double, and has ``batch`` cells, or a hundredth of the readings so
    far.

    When costs are weighed (:meth:`weigh_costs`), :math:`c_m` being what a request of model m costs over the
    typical one (:func:`~evalbudget.statistics._costs.model_effects`, from finished rounds), challengers are
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
        batch: cells of all models in a round, while what was read and what is left allow it; None for 128, or
            for 32 where models are more than 100. Nothing if it is ``until_proved``.
        until_proved: spend on the proof from the start, which takes fewer readings to its end; who leads is
            known less well before that. Contenders read 12 items at a time, or one in 8 of those read before.
        common: see ProvingSampler.

    Attributes:
        history_note: what became of the history, one sentence; empty without. It may change while the race
            goes on.

    Raises:
        InvalidInputError: an option is out of range; see also RacingSampler.
    """

    name = "race"
    note_kinds = (Known, *ProvingSampler.note_kinds[1:], AdditiveEffects, Forecast, Calibration)
    _common = ProofOptions

    def __init__(
        self,
        design: Design,
        *,
        predictor: FactorModel | None = None,
        anchors: int = 16,
        first: int = 4,
        batch: int | None = None,
        until_proved: bool = False,
        **common: Unpack[ProofOptions],
    ) -> None:
        for option, value in (("anchors", anchors), ("first", first)):
            if value < 1:
                raise InvalidInputError(f"race got {option}={value}; give 1 item or more")
        match = None if predictor is None else match_items(predictor, design.items)
        self.predictor = None if match is None else match.model
        self._matched = "" if match is None else match.reason
        is_many = design.n_models > _MANY
        if batch is None:
            batch = _BATCH_OF_MANY if is_many else _BATCH
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
        self._has_long_rounds = until_proved or not is_many
        self._first, self._anchors = min(first, self._n_items), 0
        self._cost_power = 1.0 / (1.0 + math.log(self._n_models))
        known, wanted = 0 if self.predictor is None else self.predictor.U.shape[0], _PER_ANCHOR * anchors
        if self.predictor is not None and known < wanted:
            self._matched += (
                f"; it tells of {known:,} models, and {wanted:,} are needed to choose the first items by it"
            )
        if self.predictor is not None and known >= wanted:
            self._anchors = self._first = min(anchors, self._n_items)
        self._first_order = super().order(0)
        if self.predictor is not None and self._anchors:
            self._first_order = _first_of_all(
                choose_anchors(self.predictor, self._anchors), self._first_order
            )

    @property
    def minimum_readings(self) -> int:
        """The first items of every model."""
        return self._n_models * self._first

    @property
    def history_note(self) -> str:
        """What became of the history."""
        note: Known = self._now()[1]
        return note.history_note

    def start(self, **more: Any) -> Any:
        """Everybody is a challenger."""
        m = self._n_models
        return super().start(
            n_anchors=self._anchors,
            past=[()] * m if self.predictor is not None else (),
            order=self._first_order,
            history_note=self._matched,
            has_history=self.predictor is not None,
            n_first=self._first,
            **self._no_effects(self._n_items),
            fitted_at=np.full(m, self._anchors),
            mean=np.full(m, np.nan),
            variance=np.ones(m),
            is_chased=np.ones(m, dtype=bool),
            log_cost=np.zeros(m),
            **more,
        )

    def order(self, model: int, note: Any = None) -> IntArray:
        """The items in the order in which everybody gets them."""
        return np.asarray(super().order(model) if note is None else note.order)

    def plan(self, table: Table, last: Known | None) -> Round | Stop:
        """First items for all, then the next ones of leader and challengers, then those of the proof."""
        note: Known = self.resumed(table, last)
        if last is not None:
            note = self._learned(table, note)
        begun = int(table.drawn.max())
        if note.remaining.size > 1 and begun < note.n_first:
            stops = [k for k in _TRIALS if k < note.n_anchors and self._n_models * k >= _ENOUGH]
            stops.append(note.n_first)
            count = min(k for k in stops if k > begun) - begun
            answer: Round | Stop = self.next_items(table, note, note.remaining, count)
        elif (drawable := self._to_steer(table, note)).size:
            answer = self.next_items(table, note, *self._duels(table, note, drawable))
        else:
            answer = self.proving(table, note, LEAST)
        return self._frozen(table, answer) if isinstance(answer, Round) else answer

    def ahead(self, proof: BestProof, batch: int) -> int:
        """How many items contenders read next: an eighth of those read, or a third of those left if fewer.

        The proof holds wherever rounds end, so that long ones cost only what is read past its end: a third of
        the rounds of 1/32 take 2 to 5% more evaluations (7 models x 400 items, 40 x 800, 1,000 x 9,574).
        """
        if not self._has_long_rounds:
            return super().ahead(proof, batch)
        least = _FEWEST if self.until_proved else batch
        return max(least, min(proof.read // 8, (proof.pool - proof.read) // 3))

    # whom to ask

    def _to_steer(self, table: Table, note: Known) -> IntArray:
        """Leader and challengers that have items left; none once it is time to prove."""
        steering = note.is_in & note.is_chased
        is_over = self.until_proved or steering.sum() <= 1
        return np.flatnonzero(steering & (table.drawn < self._n_items) & (not is_over))

    def _duels(self, table: Table, note: Known, drawable: IntArray) -> tuple[IntArray, IntArray]:
        """Leader and challengers that fill a round, with the number of items of each."""
        fill = self._as_expected if self._has_long_rounds else self._by_promise
        return fill(table, note, drawable)

    def _as_expected(self, table: Table, note: Known, drawable: IntArray) -> tuple[IntArray, IntArray]:
        """Leader and challengers, few items at a step.

        After each step means are taken to stay and variances to shrink, as if the answers had come as
        expected, so that the next step is of whom one would ask then.
        """
        leader = self._leading(note)
        more = np.zeros(self._n_models, dtype=np.int64)
        left = more.copy()
        left[drawable] = self._n_items - table.drawn[drawable]
        room = self._room(int(table.drawn.sum()), int(left.sum()))
        at_once = max(LEAST, room // _STEPS)
        while room and left.any():
            known = note.but(variance=self._told(table, note, more)[1])
            model = self._next(known, leader, left > 0)
            step = min(at_once, room, int(left[model]))
            more[model] += step
            left[model] -= step
            room -= step
        models = np.flatnonzero(more)
        return models, more[models]

    def _room(self, read: int, left: int) -> int:
        """Cells of a round: fewer where little was read, or where little is left."""
        most = max(min(self.batch, _FEWEST), min(_MOST * read, left // 3))
        return min(max(self.batch, read // _PART), most)

    def _next(self, note: Known, leader: int, among: BoolArray) -> int:
        """Leader or the challenger that promises most, whichever is known less well."""
        others = among.copy()
        others[leader] = False
        if not others.any():
            return leader
        challenger = self.first(self._promise(note, leader), others)
        uncertainty = note.variance * np.exp(-0.5 * note.log_cost)
        return leader if among[leader] and uncertainty[leader] >= uncertainty[challenger] else challenger

    def _by_promise(self, table: Table, note: Known, drawable: IntArray) -> tuple[IntArray, IntArray]:
        """The most promising challengers, and the leader if it is known less well; their readings double."""
        leader = self._leading(note)
        promise = self._promise(note, leader)
        others = drawable[drawable != leader]
        others = others[np.lexsort((self._rank[others], -promise[others]))]
        leader_left = bool(table.drawn[leader] < self._n_items)
        room = max(self.batch, _SHARE * float(table.drawn.sum()))
        uncertainty = note.variance * np.exp(-0.5 * note.log_cost)
        items: dict[int, int] = {}

        def ask(model: int) -> None:
            drawn = int(table.drawn[model])
            items[model] = min(max(drawn, note.n_first, 1), max(self.batch, drawn // 10))

        for challenger in others.tolist():
            if room <= sum(items.values()):
                break
            if leader_left and leader not in items and uncertainty[leader] >= uncertainty[challenger]:
                ask(leader)
            if not leader_left or uncertainty[challenger] >= uncertainty[leader]:
                ask(challenger)
        if not items:
            ask(leader if leader_left else int(others[0]))
        return np.array(list(items)), np.array(list(items.values()))

    def _leading(self, note: Known) -> int:
        among = note.is_in & note.is_chased
        among = among if among.any() else note.is_in
        return self.first(np.where(among, note.mean, -np.inf), among)

    def _promise(self, note: Known, leader: int) -> FloatArray:
        """What speaks for each model as a challenger, the largest for the first one, shape (n_models,).

        By how much it is expected to beat the leader, counting 0 if it does not. With anchors all are known
        equally well from the start, and the nearest in standard deviations take fewer readings.
        """
        behind = _behind(note, leader)
        if note.forecast is not None and note.n_anchors:
            return -self._behind_per_cost(note, behind)
        from scipy.special import ndtr  # takes long to import, and most samplers do without

        spread = np.sqrt(note.variance + note.variance[leader])
        density = np.exp(-(behind**2) / 2.0) / np.sqrt(2.0 * np.pi)
        return np.asarray(
            spread * (density - behind * ndtr(-behind)) * np.exp(-self._cost_power * note.log_cost)
        )

    def _behind_per_cost(self, note: Known, behind: FloatArray) -> FloatArray:
        if not note.log_cost.any():
            return behind
        return np.asarray(np.sign(behind) * behind**2 / 2.0 + self._cost_power * note.log_cost)

    # what was learned

    def _frozen(self, table: Table, planned: Round) -> Round:
        """The round with what is predicted of its items before they are read."""
        note: Known = planned.note
        if not note.has_history or (note.forecast is None and note.n_anchors):
            return planned
        past: list[tuple[Frozen, ...]] = list(note.past)
        for model, item in by_model(planned.model, planned.item):
            before: Frozen = np.zeros(item.size), 0.0, 0.0  # nothing is predicted before history is tried
            if note.forecast is not None:
                f = self._predicted(note.forecast, model)[note.order[int(table.drawn[model]) :]]
                before = f[: item.size].copy(), float(f.sum()), float((f * f).sum())
            past[model] += (before,)
        return planned._replace(note=note.but(past=past))

    def _learned(self, table: Table, note: Known) -> Known:
        if self.weighs_costs and (total := float(table.drawn.sum())) >= note.costs_at:
            assert table.cost is not None
            own = table.round >= 0
            log_cost = model_effects(table.model[own], table.item[own], table.cost[own], self._n_models)
            note = note.but(log_cost=log_cost, costs_at=_GROWTH * total)
        if note.has_history and note.forecast is None:
            note = self._tried(table, note)
        if not note.has_history or table.drawn.max() > note.n_anchors:
            note = self._taken_in(table, note)
        mean, variance = self._posterior(table, note)
        note = note.but(mean=mean, variance=variance)
        if (note.is_in & note.is_chased).any():
            near = _behind(note, self._leading(note)) <= _SURE
            if (note.is_chased & ~near).any():
                note = note.but(is_chased=note.is_chased & near)
        if not self._to_steer(table, note).size:
            note = self.without_dropped(table, note.but(proof=self.advanced(table, note)))
        return note

    def _no_effects(self, pool: int, expected: FloatArray | None = None) -> dict[str, Any]:
        m = self._n_models
        return {
            "effects": AdditiveEffects(m, pool, expected),
            "predicted_unread": np.full(m, _UNPREDICTED * pool),
        }

    def _tried(self, table: Table, note: Known) -> Any:
        """Predict once all have answered the first items, unless history does it worse than a constant."""
        assert self.predictor is not None
        n_read = int(table.drawn.max())
        item = note.order[:n_read].astype(np.int64)
        scores = table.scores(np.arange(self._n_models)[:, None], item)
        of_history, of_constant = losses(self.predictor, item, scores)
        if of_history >= of_constant:
            return self._without_history(note, item, of_history, of_constant)
        if n_read < note.n_anchors:
            return note
        forecast = Forecast(self.predictor, item, scores)
        none = self._no_effects(self._n_items - note.n_anchors, forecast.noise)
        return note.but(forecast=forecast, **none)

    def _without_history(self, note: Known, item: IntArray, of_history: float, of_constant: float) -> Any:
        told = (
            f"history dropped: on the {item.size} items that every model answered first, its predictions are "
            f"no better than a constant's (off by {of_history:.2f} against {of_constant:.2f})"
        )
        note = note.but(has_history=False, history_note=told, past=())
        if not note.n_anchors:
            return note
        order = _first_of_all(item, super().order(0))
        return note.but(order=order, n_anchors=item.size, n_first=item.size)

    def _taken_in(self, table: Table, note: Known) -> Known:
        """Residuals of new scores; of all scores of a model when its factors are refitted."""
        effects, forecast = to_change(note.effects), note.forecast and to_change(note.forecast)
        unread, fitted_at = note.predicted_unread.copy(), note.fitted_at.copy()
        k = self._n_items - effects.item.size  # items of the order that say nothing about effects: anchors
        models: list[int] = np.unique(table.model[table.last]).tolist()
        for model in models:
            begin, end = int(effects.length[model]), int(table.drawn[model])
            item = note.order[k + begin : end]
            if forecast is None:
                unread[model] -= _UNPREDICTED * item.size
                effects.add(model, table.scores(model, item) - _UNPREDICTED, begin)
            elif begin and end < _GROWTH * fitted_at[model]:
                f = self._predicted(forecast, model)
                effects.add(model, table.scores(model, item) - f[item], begin)
                unread[model] = f[note.order[end:]].sum()
            else:
                given = note.order[:end]
                scores = table.scores(model, given)
                read = np.isfinite(scores)
                residual = np.full(end, np.nan)
                assert self.predictor is not None
                residual[read] = forecast.refit(self.predictor, model, given[read], scores[read])
                effects.add(model, residual[k:])
                unread[model] = self._predicted(forecast, model)[note.order[end:]].sum()
                fitted_at[model] = end
        effects.settle(models, None if forecast is None else forecast.noise)
        return note.but(effects=effects, forecast=forecast, predicted_unread=unread, fitted_at=fitted_at)

    def _predicted(self, forecast: Forecast, model: int) -> FloatArray:
        assert self.predictor is not None
        return forecast.row(self.predictor, model)

    def _posterior(self, table: Table, note: Known) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of every model's benchmark mean."""
        effects = note.effects
        unread = effects.item.size - effects.length
        size = np.maximum(self._n_items - (table.drawn - table.n_read), 1)
        effect_so_far = np.concatenate([[0.0], np.cumsum(effects.item)])
        item_effects = effect_so_far[-1] - effect_so_far[effects.length]
        mean = (table.total + note.predicted_unread + unread * effects.model + item_effects) / size
        own, variance = self._told(table, note, np.zeros_like(table.drawn))
        if note.forecast is not None:
            return np.where(own, mean, note.forecast.mean), variance
        return np.where(own, mean, float(mean[own].mean()) if own.any() else 0.5), variance

    def _told(self, table: Table, note: Known, more: IntArray) -> tuple[BoolArray, FloatArray]:
        """Whose mean rests on its own answers, and all variances, had each model read so many items more."""
        effects, n = note.effects, self._n_items
        drawn, count = table.drawn + more, np.maximum(effects.count + more, 1)
        unread = (effects.item.size - effects.length - more) / np.maximum(n - (table.drawn - table.n_read), 1)
        variance = np.where(drawn < n, effects.uncertain / count * unread * (1.0 + _FEW / count), 0.0)
        told = effects.count + more > 0
        if note.forecast is None:
            return told, np.where(told, variance, 1.0)
        # What history predicts from a model's answers, or what the answers say, whichever is surer. How sure
        # a prediction is, history's own models tell. Nothing is learned about that from the race: the models
        # that were asked most are those that looked good, and would shift what is expected of the others
        # downwards. Both rest on the same scores, so they are not averaged: the less certain one adds next to
        # nothing, and once the data alone say more, a wrong prediction must not outlast them.
        predicted = note.forecast.variance
        if more.any():
            predicted = np.minimum(predicted, note.forecast.variance_after(table.n_read + more))
        surer = variance < predicted
        # without anchors history is small: its predictions only stand in for what a model has not read
        own = (told | (drawn >= n)) & (surer if note.n_anchors else True)
        return own, np.where(own, variance, predicted)

    def estimates(self, table: Table, note: Any) -> FloatArray:
        """Means of the posterior; where rounds are long, with what the one under way has told."""
        untried = note.has_history and note.forecast is None
        if table.is_finished or untried or not self._has_long_rounds:
            return np.asarray(note.mean)
        so_far = table.without_open()
        return self._posterior(so_far, self._taken_in(so_far, note))[0]


def _behind(note: Known, leader: int) -> FloatArray:
    """Distance to the leader in standard deviations, shape (n_models,)."""
    spread = np.sqrt(note.variance + note.variance[leader])
    return np.asarray((note.mean[leader] - note.mean) / np.maximum(spread, 1e-9))


def _first_of_all(first: IntArray, order: IntArray) -> IntArray:
    """These items, then the others in this order."""
    return np.concatenate([first, order[~np.isin(order, first)]])
