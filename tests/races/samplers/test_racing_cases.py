"""Hard cases of racing: budgets, ties, lost and exhausted models, late models, missing and foreign scores."""

from __future__ import annotations

import random
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.claims import variant
from tests.races.worlds import answered, buy, design, factors, finish

from evalbudget import Budget, Cell, Reading
from evalbudget.book import Book
from evalbudget.errors import BudgetError, InvalidInputError, SamplerError, UnknownNameError
from evalbudget.races.prediction import FactorModel
from evalbudget.races.prediction._coefficient import Coefficient
from evalbudget.races.prediction._corrections import corrected
from evalbudget.races.samplers import (
    LUCB,
    UCBE,
    NaivePooling,
    PairedEProcess,
    Pulse,
    Race,
    RacingSampler,
    SequentialHalving,
    SuccessiveRejects,
    UniformRacing,
)
from evalbudget.statistics._bounds import FloatArray
from evalbudget.testing import play
from references.outcomes import OutcomeKind, outcome_of

COLD: list[type[RacingSampler]] = [UniformRacing, UCBE, LUCB, SuccessiveRejects, SequentialHalving, Race]


def of_history(m: int, n: int, models: int, seed: int = 3) -> tuple[FactorModel, FloatArray]:
    """A history of items that differ much, and scores of as many of its models, shape (m, n)."""
    rng = np.random.default_rng(seed)
    history = factors(design(m, n).items, rng, models=models, spread=3.0, level=1.0)
    return history, (rng.random((m, n)) < history.predict(history.U[:m])).astype(float)


def scores(seed: int, m: int, n: int, best: float = 0.9, rest: float = 0.4) -> FloatArray:
    rng = np.random.default_rng(seed)
    level = np.where(np.arange(m) == m // 2, best, rest)
    return (rng.random((m, n)) < level[:, None]).astype(float)


@pytest.mark.parametrize("cls", COLD)
def test_finds_a_clear_winner(cls: Any) -> None:
    sampler = finish(cls(design(9, 200), seed=1), scores(0, 9, 200), 1200)
    assert sampler.leader() == 4


@pytest.mark.parametrize("cls", COLD)
def test_one_model_is_the_best(cls: Any) -> None:
    sampler = finish(cls(design(1, 30), seed=1), scores(0, 1, 30))
    assert sampler.stop_reason
    assert sampler.leader() == 0
    assert outcome_of(sampler) == (OutcomeKind.BEST, (0,))


@pytest.mark.parametrize("cls", [LUCB, SuccessiveRejects, SequentialHalving, Race])
@pytest.mark.parametrize("level", [0.0, 1.0, 0.5])
def test_equal_models_are_never_told_apart_for_good(cls: Any, level: float) -> None:
    row = (np.random.default_rng(2).random(40) < level).astype(float)
    sampler = finish(cls(design(2, 40), seed=1), np.stack([row, row]))
    assert sampler.stop_reason
    if cls is LUCB or cls is Race:
        assert outcome_of(sampler) == (OutcomeKind.TIE, (0, 1))
    assert sampler.leader() in (0, 1)


def test_models_that_tie_but_for_rounding_tie() -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        row = np.round(rng.random(60), 1)
        truth = np.stack([row, rng.permutation(row), rng.permutation(row), 0.5 * row])
        sampler = finish(LUCB(design(4, 60), batch=7, seed=seed), truth)
        assert outcome_of(sampler) == (OutcomeKind.TIE, (0, 1, 2)), seed
        assert set(sampler.eliminated) <= {3}
        assert not sampler.lost


def test_the_smallest_difference_is_none_to_round_away() -> None:
    truth = np.tile(np.round(np.random.default_rng(0).random(60), 1), (2, 1))
    truth[1, 7] += 0.1 if truth[1, 7] < 0.9 else -0.1
    sampler = finish(LUCB(design(2, 60), batch=7, seed=1), truth)
    assert outcome_of(sampler) == (OutcomeKind.BEST, (int(truth.mean(axis=1).argmax()),))


def test_models_within_the_margin_are_equivalent() -> None:
    truth = scores(3, 2, 3000, 0.6, 0.6)
    lucb = finish(LUCB(design(2, 3000), margin=0.2, seed=1), truth)
    assert lucb.asked < 6000
    assert outcome_of(lucb) == (OutcomeKind.EQUIVALENT, (0, 1))


@pytest.mark.parametrize("cls", COLD)
def test_a_model_that_always_fails_leaves_and_holds_nobody_up(cls: Any) -> None:
    truth = scores(0, 5, 60)
    sampler = cls(design(5, 60), seed=1)
    journal = play(
        sampler,
        10_000,
        score=lambda c: None if c.model == 0 else truth[c.model, c.item],
        concurrency=6,
        together=6,
    )
    failed = sum(reading.value is None for reading in journal.readings)
    assert failed <= 3 * (8 + 6), "it went on asking"
    assert 0 in sampler.eliminated
    assert sampler.leader() == 2
    assert journal.stopped


@pytest.mark.parametrize("cls", COLD)
def test_a_model_that_dies_midway_leaves(cls: Any) -> None:
    truth = scores(0, 4, 200, 0.9, 0.85)
    sampler = cls(design(4, 200), seed=1)
    answered: dict[int, int] = {}

    def score(cell: Cell) -> float | None:
        answered[cell.model] = answered.get(cell.model, 0) + 1
        return None if cell.model == 2 and answered[2] > 70 else truth[cell.model, cell.item]

    journal = play(sampler, 10_000, score=score, concurrency=4, together=4)
    failed = sum(reading.value is None for reading in journal.readings)
    assert failed <= 3 * 64 + 20
    assert journal.stopped


@pytest.mark.parametrize("cls", COLD)
@pytest.mark.parametrize("budget", [50, 130, 10_000])
def test_failures_buy_the_same_cells_in_any_order(cls: Any, budget: int) -> None:
    truth = scores(1, 5, 40, 0.8, 0.6)
    rng = np.random.default_rng(7)
    fails = rng.geometric(0.75, truth.shape) - 1  # that often before a cell answers
    fails[:, rng.random(40) < 0.05] = 99
    fails[4] = 99

    def score(cell: Cell) -> float | None:
        late = cell.epoch < fails[cell.model, cell.item]
        return None if late else float(truth[cell.model, cell.item])

    bought = set()
    for concurrency, together, seed in ((1, 1, 0), (7, 1, 3), (1000, 40, 5)):
        sampler = cls(design(5, 40), seed=1)
        order = random.Random(seed)
        journal = play(sampler, budget, score=score, concurrency=concurrency, together=together, order=order)
        assert journal.stopped or len(journal.readings) == budget
        cells = tuple(sorted(reading.request.cell for reading in journal.readings))
        bought.add((cells, sampler.leader(), outcome_of(sampler), tuple(sampler.eliminated), sampler.lost))
    assert len(bought) == 1


@pytest.mark.parametrize("make", [UniformRacing, SuccessiveRejects])
def test_a_long_round_of_a_model_that_is_down_is_not_paid_for(make: Any) -> None:
    truth = scores(0, 2, 500)
    options = {"batch": 500} if make is UniformRacing else {}
    sampler = make(design(2, 500), seed=1, **options)
    journal = play(
        sampler,
        10_000,
        score=lambda c: None if c.model == 0 else truth[c.model, c.item],
        concurrency=50,
        together=25,
    )
    assert sum(reading.value is None for reading in journal.readings) == 16 + 8
    assert sampler.lost == {0}


def test_models_that_are_down_or_withdrawn_are_lost_and_worse_ones_are_not() -> None:
    truth = scores(0, 5, 60)
    truth[0] = np.nan
    sampler = SuccessiveRejects(design(5, 60), budget=250, seed=1)
    book = Book(sampler, Budget(250))
    assert sampler.lost == frozenset()
    book.withdraw(3, "its task ended")
    book.look()
    assert sampler.lost == {3}
    buy(book, truth)
    assert sampler.lost == {0, 3}
    assert set(sampler.eliminated) == {0, 1, 3, 4}
    book.withdraw(1, "its task ended")
    book.look()
    assert sampler.lost == {0, 3}, "it was eliminated before"


def test_a_model_whose_cells_close_in_whole_rounds_is_lost() -> None:
    truth = scores(0, 3, 60)
    truth[1] = np.nan
    assert finish(UCBE(design(3, 60), batch=10, seed=1), truth).lost == {1}


@pytest.mark.parametrize("coefficient", ["corrected", "published"])
def test_estimates_of_pulse_are_over_items_that_do_not_fail(coefficient: str) -> None:
    n = 600
    rng = np.random.default_rng(0)
    history = FactorModel.train((rng.random((20, n)) < 0.7).astype(float), design(1, n).items, rank=0)
    truth = (rng.random((2, n)) < 0.8).astype(float)
    truth[0, rng.random(n) < 0.3] = np.nan
    sampler = Pulse(design(2, n), predictor=history, batch=16, coefficient=coefficient)
    while sampler.asked < 1000:
        cells = sampler.next_cells()
        assert cells is not None
        sampler.learn(cells, truth[cells.model, cells.item])
    sampler.leader()  # takes the last batch in
    assert sampler.draws(0).n_failed > 50
    for model in range(2):
        assert sampler.estimates(*sampler._now())[model] == pytest.approx(np.nanmean(truth[model]), abs=0.04)
        assert sampler.estimates(*sampler._now())[model] == pytest.approx(
            corrected(sampler.draws(model), Coefficient(coefficient)).theta.mean()
        )


@pytest.mark.parametrize("cls", COLD)
def test_items_that_fail_for_all_block_nothing(cls: Any) -> None:
    truth = scores(0, 5, 60)
    truth[:, ::3] = np.nan
    sampler = cls(design(5, 60), seed=1)
    played = play(sampler, 10_000, score=lambda c: float(truth[c.model, c.item]), concurrency=6, together=6)
    assert played.stopped
    assert sampler.leader() == 2
    assert sampler.eliminated.keys().isdisjoint({2})
    drawn = sampler.draws(2)
    assert drawn.n_failed == np.isnan(drawn.value).sum() > 0
    assert drawn.n_items == 60


@pytest.mark.parametrize("cls", COLD)
def test_an_exhausted_model_is_known_exactly(cls: Any) -> None:
    truth = scores(5, 3, 40, 0.6, 0.55)
    sampler = finish(cls(design(3, 40), seed=1), truth)
    drawn = sampler.draws(sampler.leader())
    if drawn.exhausted:
        assert np.nanmean(sampler.scores_of(sampler.leader())) == truth[sampler.leader()].mean()
    whole = [m for m in range(3) if sampler.n_read(m) == 40]
    if len(whole) == 3:
        assert truth[sampler.leader()].mean() == truth.mean(axis=1).max()


def test_a_budget_that_is_too_small_names_the_smallest() -> None:
    with pytest.raises(BudgetError, match="needs 21 readings"):
        SuccessiveRejects(design(20, 50), budget=20)
    with pytest.raises(BudgetError, match="needs 100 readings"):
        SequentialHalving(design(20, 50), budget=99)
    assert SuccessiveRejects(design(20, 50), budget=21).minimum_readings == 21
    assert SequentialHalving(design(20, 50), budget=100).minimum_readings == 100
    assert UCBE(design(20, 50), batch=64).minimum_readings == 20 * 50
    assert UCBE(design(20, 50), batch=16).minimum_readings == 20 * 16


@pytest.mark.parametrize("budget", [21, 55, 100, 400, 999])
@pytest.mark.parametrize("cls", [SuccessiveRejects, SequentialHalving])
def test_a_planned_budget_is_never_exceeded(cls: Any, budget: int) -> None:
    budget = max(budget, cls(design(20, 50)).minimum_readings)
    sampler = finish(cls(design(20, 50), budget=budget), scores(0, 20, 50))
    assert 20 <= sampler.asked <= budget


def test_a_model_added_late_catches_up_on_what_was_paid_for() -> None:
    truth = scores(0, 4, 60)
    first = UCBE(design(3, 60), batch=8, seed=2)
    journal = play(first, 100, score=lambda c: truth[c.model, c.item])
    later = UCBE(design(4, 60), batch=8, seed=2)
    paid = {reading.request.cell for reading in journal.readings}
    book = Book(later, Budget(40), most=lambda cell: float(cell not in paid))
    book.has_answers = True
    asked = [reading.request.cell for reading in buy(book, truth, cost=lambda cell: float(cell not in paid))]
    assert paid & set(asked)
    assert book.spent == 40
    assert [cell.model for cell in asked if cell not in paid][:8] == [3] * 8
    for model in range(3):
        assert later.draws(model).item[:8].tolist() == first.draws(model).item[:8].tolist()


def test_draws_stop_at_the_first_open_cell() -> None:
    sampler = UCBE(design(2, 30), batch=10, seed=0)
    book = Book(sampler, Budget(20))
    of_first = [request for request in book.trade((), 20) if request.cell.model == 0]
    book.trade([Reading(request, 1.0) for request in of_first if request is not of_first[3]], 0)
    book.look()
    assert sampler.draws(0).value.tolist() == [1.0] * 3
    assert sampler.n_read(0) == 9
    assert np.isnan(sampler.scores_of(0)).sum() == 21
    book.trade([Reading(of_first[3], 0.0)], 0)
    book.look()
    drawn = sampler.draws(0)
    assert drawn.value.tolist() == [1.0] * 3 + [0.0] + [1.0] * 6
    assert drawn.item.tolist() == [request.cell.item for request in of_first]
    assert drawn.n_batches == 1
    assert drawn.cost == 10


def test_anchors_are_known_and_not_drawn() -> None:
    n = 80
    history = factors(design(1, n).items, models=60)
    sampler = finish(Race(design(5, n), predictor=history, anchors=6, seed=1), scores(0, 5, n), 200)
    drawn = sampler.draws(sampler.leader())
    assert drawn.known.size == drawn.known_item.size == 6
    assert not set(drawn.known_item.tolist()) & set(drawn.item.tolist())
    assert (drawn.unseen_prediction_sum_sq <= drawn.unseen_prediction_sum).all()


@pytest.mark.parametrize(("models", "trusted"), [(47, False), (48, True)])
def test_eight_models_of_history_for_each_anchor_or_no_anchors(models: int, trusted: bool) -> None:
    n = 80
    history, truth = of_history(5, n, models)
    sampler = finish(Race(design(5, n), predictor=history, anchors=6, seed=1), truth, 150)
    assert sampler.predictor is not None
    drawn = sampler.draws(sampler.leader())
    assert drawn.known.size == (6 if trusted else 0)
    if not trusted:
        alone = finish(Race(design(5, n), seed=1), truth, 150)
        assert drawn.item[:4].tolist() == alone.draws(sampler.leader()).item[:4].tolist()
        assert not drawn.prediction[:4].any()
        assert drawn.prediction[4:].all()


def test_a_small_history_stands_in_for_what_is_not_read_and_no_more() -> None:
    """By hand: scores read, predictions of the rest, and what the model scores above its predictions."""
    n = 60
    history, truth = of_history(6, n, 20, seed=5)
    sampler = finish(Race(design(6, n), predictor=history, first=12, seed=2), truth, 72)
    known, note = sampler._now()
    effects = copy(note.effects)
    effects.item[:] = 0.0
    mean, _ = sampler._posterior(known, replace(note, effects=effects))
    for model in range(6):
        read = np.isfinite(sampler.scores_of(model))
        f = note.forecast.row(sampler.predictor, model)
        effect = float(effects.model[model])
        expected = (truth[model, read].sum() + f[~read].sum() + (~read).sum() * effect) / n
        assert mean[model] == pytest.approx(expected)
        assert mean[model] != pytest.approx(float(note.forecast.mean[model]), abs=1e-6)


def test_challengers_are_those_expected_to_beat_the_leader_by_most() -> None:
    sampler = Race(design(4, 100), batch=1)
    mean, variance = np.array([0.70, 0.69, 0.50, 0.60]), np.array([0.0001, 0.0001, 0.04, 0.01])
    note = replace(sampler.start(), mean=mean, variance=variance)
    draws = np.random.default_rng(0).standard_normal((2, 400_000))
    for model, promise in enumerate(sampler._promise(note, 0)):
        beats = mean[model] - mean[0]
        spread = np.sqrt(variance[model] + variance[0])
        assert promise == pytest.approx(np.maximum(beats + spread * draws[0], 0.0).mean(), abs=2e-4)
    # the second one is nearest in standard deviations, the fourth promises most but for the third
    assert sampler._promise(note, 0).argsort()[::-1].tolist() == [2, 3, 0, 1]
    assert sampler._next(note, 0, np.ones(4, dtype=bool)) == 2


def test_with_anchors_challengers_are_the_nearest_in_standard_deviations() -> None:
    n = 80
    history, truth = of_history(4, n, 60)
    sampler = finish(Race(design(4, n), predictor=history, anchors=6, seed=1), truth, 24)
    note = sampler._now()[1]
    assert note.forecast is not None
    mean, variance = np.array([0.70, 0.67, 0.50, 0.60]), np.array([0.0001, 0.0001, 0.04, 0.01])
    note = replace(note, mean=mean, variance=variance)
    behind = [0.0, 0.03 / 0.0002**0.5, 0.2 / 0.0401**0.5, 0.1 / 0.0101**0.5]
    np.testing.assert_allclose(sampler._promise(note, 0), -np.array(behind))
    assert sampler._next(note, 0, np.ones(4, dtype=bool)) == 3


def steered(mean: list[float], variance: float) -> list[int]:
    """Items of each model in the round after a first one, were their means known to be these."""
    m, n = len(mean), 400
    sampler = Race(design(m, n), batch=32, seed=1)
    first = sampler.next_cells()
    assert first is not None
    sampler.learn(first, np.tile([1.0, 0.0], 2 * m))
    table, note = sampler._now()
    effects = copy(note.effects)
    effects.uncertain = np.full(m, variance)
    note = replace(note, mean=np.array(mean), effects=effects)
    models, counts = sampler._duels(table, note, np.arange(m))
    return np.bincount(models, counts, m).astype(int).tolist()


def test_a_round_goes_to_those_whom_one_would_ask_once_its_first_answers_had_come() -> None:
    assert steered([0.5, 0.5, 0.5, 0.5], 0.25) == [8, 8, 8, 8]
    near = steered([0.60, 0.55, 0.50, 0.10], 0.25)
    assert sum(near) == 32
    assert near[0] >= near[1] > near[2] > near[3] >= 0
    assert near[2] > 0


def rounds_of(m: int, upto: int, **options: int) -> tuple[list[int], list[int]]:
    """Cells of each round in which nobody falls behind, and of all rounds before it."""
    n = 400
    truth = np.random.default_rng(0).random((m, n)) * 0.01
    sampler = Race(design(m, n), score_range=(-1.0, 2.0), **options)
    sizes = []
    while (cells := sampler.next_cells()) is not None and sampler.asked < upto:
        sampler.learn(cells, truth[cells.model, cells.item])
        sizes.append(len(cells))
    assert sizes[0] == 4 * m
    return sizes[1:], np.cumsum(sizes)[:-1].tolist()


@pytest.mark.parametrize(("options", "least"), [({"batch": 32}, 32), ({}, 128)])
def test_rounds_have_a_batch_or_one_in_24_of_what_was_read(options: dict[str, int], least: int) -> None:
    sizes, before = rounds_of(40, 4000, **options)
    assert sizes == [max(least, read // 24) for read in before]


def test_of_many_models_a_round_has_a_hundredth_of_what_was_read() -> None:
    sizes, before = rounds_of(101, 5000)
    assert sizes[:10] == [32] * 10
    assert all(size <= 2.0 * max(32.0, 0.01 * read) for size, read in zip(sizes, before, strict=True))


def test_the_leader_is_known_from_the_answers_of_a_round_that_is_not_finished() -> None:
    sampler = Race(design(2, 200), seed=1)
    truth = np.array([[1.0, 0.0] * 100, [0.0] * 200])
    truth[1, sampler.order(1)[4:]] = 1.0  # behind at first
    finish(sampler, truth, 8)
    assert sampler.leader() == 0
    finish(sampler, truth, 40)
    assert not sampler._table().is_finished
    assert sampler.proof is not None
    assert sampler.proof.winner is None
    assert sampler.leader() == 1


def test_history_of_other_items_is_ignored_and_said() -> None:
    history = FactorModel.of_factors(np.ones((30, 1)), tuple(f"other {j}" for j in range(30)))
    sampler = Race(design(3, 30), predictor=history)
    assert sampler.predictor is None
    assert "ignored" in sampler.history_note
    assert sampler.config["predictor"] is None
    with pytest.raises(InvalidInputError, match="use race"):
        Pulse(design(3, 30), predictor=history)


@pytest.mark.parametrize("sampler", [Pulse, NaivePooling])
def test_without_history_predictions_are_the_models_own_means(sampler: type[Pulse | NaivePooling]) -> None:
    cold = finish(sampler(design(3, 60), batch=10, tau=1), scores(0, 3, 60), 120)
    assert "predicted by its own mean" in cold.history_note
    for model in range(3):
        seen = cold.scores_of(model)
        seen = seen[np.isfinite(seen)]
        row = cold._now()[1].row[model]
        assert np.ptp(row) == 0.0
        assert 0.0 < row[0] < 1.0
        assert abs(row[0] - seen.mean()) < 0.2  # of all but the last batch, and shrunk a little
    history = FactorModel.of_factors(np.ones((60, 1)), design(1, 60).items)
    assert sampler(design(3, 60), predictor=history).history_note == ""


def test_options_of_pulse_that_make_no_sense() -> None:
    history = FactorModel.of_factors(np.ones((30, 1)), design(1, 30).items)
    with pytest.raises(UnknownNameError, match=r"coefficient 'publish'.*published"):
        Pulse(design(3, 30), predictor=history, coefficient="publish")
    with pytest.raises(InvalidInputError, match="t0=0"):
        Pulse(design(3, 30), predictor=history, t0=0)
    assert Pulse(design(3, 30), predictor=history, t0=2, batch=4).minimum_readings == 24
    assert Pulse(design(3, 30), predictor=history, t0=9, batch=4).minimum_readings == 90


def test_scores_on_a_declared_range() -> None:
    truth = scores(0, 3, 50)
    plain = finish(UCBE(design(3, 50), batch=8), truth, 120)
    scaled = finish(UCBE(design(3, 50), batch=8, score_range=(1.0, 11.0)), 1 + 10 * truth, 120)
    for model in range(3):
        np.testing.assert_allclose(plain.scores_of(model), scaled.scores_of(model))
    with pytest.raises(InvalidInputError, match="declare the smallest and largest"):
        finish(UCBE(design(3, 50), batch=8), 2 * truth, 120)
    with pytest.raises(InvalidInputError, match="score range"):
        UCBE(design(3, 50), score_range=(1.0, 1.0))


def test_scores_told_one_by_one_are_on_the_declared_range() -> None:
    sampler = UniformRacing(design(1, 4), score_range=(1.0, 11.0))
    buy(Book(sampler, Budget(4)), np.array([[1.0, 6.0, 11.0, 11.0 + 5e-9]]))  # the last by rounding
    assert sorted(sampler.scores_of(0).tolist()) == [0.0, 0.5, 1.0, 1.0]
    for beyond in (0.99, 11.01):
        book = Book(UniformRacing(design(1, 4), score_range=(1.0, 11.0)), Budget(4))
        with pytest.raises(InvalidInputError, match=f"{beyond:g} of model .* outside the range 1 to 11"):
            buy(book, np.full((1, 4), beyond))


def test_a_round_is_answered_once_before_the_next() -> None:
    sampler = UniformRacing(design(2, 5))
    cells = sampler.next_cells(3)
    assert cells is not None
    with pytest.raises(SamplerError, match="another is unanswered"):
        sampler.next_cells()
    sampler.learn(cells, np.ones(3))
    with pytest.raises(SamplerError, match="did not give"):
        sampler.learn(cells, np.ones(3))


@pytest.mark.parametrize("cls", [*COLD, PairedEProcess])
@pytest.mark.parametrize("seed", [0, variant(1), variant(2)])
def test_who_looks_at_a_race_whose_models_leave_changes_nothing(cls: Any, seed: int) -> None:
    truth = scores(seed, 5, 40, 0.8, 0.6)
    asked = []
    for looks in (False, True):
        sampler, rng = cls(design(5, 40), seed=seed), random.Random(seed)
        book, cells = Book(sampler, Budget(10_000)), []
        for upto in (13, 41, 60, 10_000):
            while len(cells) < upto and (came := buy(book, truth, 1 if looks else upto - len(cells))):
                cells += [reading.request.cell for reading in came]
                assert sampler.leader() not in sampler.lost
                assert sampler.eliminated.keys() >= sampler.lost
            book.withdraw(rng.randrange(4), "its task ended")
        asked.append((cells, sampler.lost, sampler.leader()))
    assert asked[0] == asked[1]


def test_a_model_withdrawn_while_its_round_is_under_way() -> None:
    sampler = UCBE(design(3, 30), batch=10, seed=0)
    book, truth = Book(sampler, Budget(10_000)), np.ones((3, 30))
    requests = book.trade((), 30)
    book.withdraw(1, "its task ended")
    book.trade(answered(requests, truth), 0)
    book.look()
    assert [sampler.n_read(model) for model in range(3)] == [10, 10, 10]
    buy(book, truth)
    assert [sampler.n_read(model) for model in range(3)] == [30, 10, 30]


@pytest.mark.parametrize("bad", [{"batch": 0}, {"first": 0}, {"delta": 0.0}, {"anchors": 0}])
def test_options_out_of_range_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(bad))):
        Race(design(2, 5), **bad)


@pytest.mark.parametrize("looks", [False, True])
def test_whom_a_finished_round_rejects_is_not_lost_by_leaving_after_it(looks: bool) -> None:
    sampler = SuccessiveRejects(design(3, 30), budget=60, seed=0)
    book = Book(sampler, Budget(60))
    first = book.trade((), 60)
    assert book.trade(answered(first, np.repeat([[0.0], [1.0], [1.0]], 30, axis=1)), 1)
    if looks:
        book.look()
    book.withdraw(0, "its task ended")
    book.look()
    assert sampler.lost == frozenset()
    assert set(sampler.eliminated) == {0}


@pytest.mark.parametrize("looks", [False, True])
def test_what_a_model_answers_after_it_was_withdrawn_counts(looks: bool) -> None:
    sampler = UCBE(design(2, 30), batch=10, seed=0)
    book = Book(sampler, Budget(20))
    asked = book.trade((), 20)
    book.withdraw(1, "its task ended")
    book.trade([Reading(each, 1.0) for each in asked if each.cell.model == 0], 0)
    if looks:
        book.look()
        assert sampler.leader() == 0
    book.trade([Reading(each, 0.5) for each in asked if each.cell.model == 1], 0)
    book.look()
    assert [sampler.n_read(model) for model in range(2)] == [10, 10]
    assert sampler._now()[0].total.tolist() == [10.0, 5.0]
    assert np.isfinite(sampler.scores_of(1)).sum() == 10


def test_what_was_predicted_of_a_round_holds_no_other_predictions() -> None:
    history, truth = of_history(4, 200, 150)
    sampler = Race(design(4, 200), predictor=history, seed=0)
    finish(sampler, truth, 300)
    kept = [f for rounds in sampler._now()[1].past for f, *_ in rounds]
    assert kept
    assert all(f.base is None for f in kept)
