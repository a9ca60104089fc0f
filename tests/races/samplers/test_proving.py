"""Samplers that prove who is the best: the proof is that of the scores read, whatever was asked and why."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications, variant
from tests.races.worlds import buy, design, finish

from evalbudget import Budget
from evalbudget.book import Book
from evalbudget.errors import InvalidInputError
from evalbudget.races.prediction import FactorModel
from evalbudget.races.samplers import PairedEProcess, ProvingSampler, Race, SequentialHalving
from evalbudget.statistics._best_proof import BestProof
from evalbudget.statistics._bounds import FloatArray
from evalbudget.testing import play
from references.outcomes import OutcomeKind, outcome_of


def world(seed: int, m: int = 5, n: int = 60) -> FloatArray:
    rng = np.random.default_rng(seed)
    chance = np.linspace(0.8, 0.4, m)[:, None] + rng.normal(0, 0.15, n)
    return (rng.random((m, n)) < chance).astype(float)


MADE: list[Any] = [
    PairedEProcess,
    Race,
    lambda design, seed: Race(design, until_proved=True, seed=seed),
]


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("budget", [37, 100, 173, None])
def test_the_proof_is_that_of_the_items_all_contenders_read(make: Any, budget: int | None) -> None:
    for seed in range(3):
        truth = world(seed)
        sampler: ProvingSampler = finish(make(design(5, 60), seed=seed), truth, budget)
        proof = BestProof(5, 60)
        order = sampler.order(0)
        while not proof.decided:
            item = order[proof.read]
            if not all(np.isfinite(sampler.scores_of(m)[item]) for m in proof.contenders.tolist()):
                break
            proof.update(truth[:, item])
        assert sampler.proof is not None
        assert sampler.proof.dropped_at.tolist() == proof.dropped_at.tolist()
        assert sampler.proof.read == proof.read
        assert sampler.proved_worse == set(np.flatnonzero(proof.dropped_at >= 0).tolist())
        assert (outcome_of(sampler).kind is OutcomeKind.BEST) == (proof.winner is not None)
        if proof.winner is not None:
            assert sampler.leader() == proof.winner == outcome_of(sampler).models[0]


@pytest.mark.parametrize("make", MADE)
def test_nothing_is_left_undecided_while_there_is_something_to_read(make: Any) -> None:
    for seed in range(6):
        truth = world(seed, 4, 40)
        sampler = finish(make(design(4, 40), seed=seed), truth)
        best = np.flatnonzero(truth.mean(axis=1) == truth.mean(axis=1).max())
        assert sampler.stop_reason
        assert sampler.stop_reason.startswith("proved")
        assert outcome_of(sampler).kind is (OutcomeKind.BEST if best.size == 1 else OutcomeKind.TIE)
        assert set(outcome_of(sampler).models) == set(best.tolist())
        assert set(sampler.eliminated) == set(range(4)) - set(best.tolist())


@pytest.mark.parametrize("make", MADE)
def test_exact_ties_are_proved_by_reading_all_of_those_that_tie(make: Any) -> None:
    row = np.round(np.random.default_rng(3).random(30), 1)
    rng = np.random.default_rng(4)
    truth = np.stack([row, rng.permutation(row), np.zeros(30), row])
    sampler = finish(make(design(4, 30), seed=2), truth)
    assert outcome_of(sampler) == (OutcomeKind.TIE, (0, 1, 3))
    assert set(sampler.eliminated) == {2}
    assert sampler.n_read(2) < 30


@pytest.mark.parametrize("cls", [Race, PairedEProcess, SequentialHalving])
def test_a_tie_does_not_follow_from_what_is_planned(cls: Any) -> None:
    """Two models at .475 and .450 of the 40 items each was asked, of 60; the others are not read."""
    truth = np.zeros((2, 60))
    options = {"budget": 120} if cls is SequentialHalving else {"batch": 60}
    if cls is Race:
        options["first"] = 60
    sampler = cls(design(2, 60), seed=1, **options)
    order = sampler.order(0)
    truth[0, order[:19]] = 1.0
    truth[1, order[1:19]] = 1.0
    finish(sampler, truth, 80)
    assert [sampler.n_read(m) for m in (0, 1)] == [40, 40]
    assert outcome_of(sampler).kind is OutcomeKind.UNDECIDED


def test_rounds_until_proved_grow_with_what_was_read_and_shrink_towards_the_end() -> None:
    truth = np.ones((2, 200))
    sampler = Race(design(2, 200), until_proved=True, seed=0)
    read = []
    while (cells := sampler.next_cells()) is not None:
        sampler.learn(cells, truth[cells.model, cells.item])
        read.append(sampler.n_read(0))
    assert read == [4, 16, 28, 40, 52, 64, 76, 88, 100, 112, 126, 141, 158, 172, 184, 196, 200]


def test_a_round_under_way_tells_who_leads_until_one_is_proved() -> None:
    sampler = Race(design(2, 100), until_proved=True, seed=0)
    truth, order = np.zeros((2, 100)), sampler.order(0)
    truth[0, order[:4]] = 1.0
    truth[1, order[3:]] = 1.0
    finish(sampler, truth, 8)
    assert sampler.leader() == 0
    finish(sampler, truth, 20)  # of the 32 at which the next round ends
    assert sampler.leader() == 1


def test_steering_first_costs_little_and_finds_the_same() -> None:
    truth = world(0, 6, 300)
    first = finish(Race(design(6, 300), seed=3), truth)
    only = finish(Race(design(6, 300), until_proved=True, seed=3), truth)
    eprocess = finish(PairedEProcess(design(6, 300), seed=3), truth)
    assert outcome_of(first) == outcome_of(only) == outcome_of(eprocess)
    assert eprocess.asked <= only.asked <= 1.1 * eprocess.asked
    assert eprocess.asked <= first.asked <= 1.5 * eprocess.asked


def test_failed_cells_and_lost_models() -> None:
    truth = world(2, 4, 80)
    holes = np.random.default_rng(0).random(truth.shape) < 0.1
    sampler, strict = (
        PairedEProcess(design(4, 80), seed=1, missing="drop"),
        PairedEProcess(design(4, 80), seed=1),
    )

    def score(cell: Any) -> float | None:
        if cell.model == 0 or holes[cell.model, cell.item]:
            return None
        return float(truth[cell.model, cell.item])

    play(sampler, 10_000, score=score, concurrency=5, together=5)
    stopped = play(strict, 10_000, score=score, concurrency=5, together=5).stopped
    assert strict.lost == {0}
    assert stopped == "every cell of the models in the race was read or closed"
    assert outcome_of(strict).kind is OutcomeKind.UNDECIDED  # one in ten is missing, of each of them
    assert sampler.lost == {0}
    assert outcome_of(sampler).kind is OutcomeKind.BEST
    assert outcome_of(sampler).models == (1,)
    assert 0 not in sampler.proved_worse
    lone = Race(design(2, 30), seed=1)
    book = Book(lone, Budget(60))
    book.withdraw(0, "its task ended")
    assert not buy(book, truth[:2])
    assert book.stop_reason == "only one model is left"
    assert outcome_of(lone) == (OutcomeKind.BEST, (1,))
    nobody = PairedEProcess(design(2, 30), seed=1)
    book = Book(nobody, Budget(60))
    book.withdraw(0, "its task ended")
    book.withdraw(1, "its task ended")
    assert not buy(book, truth[:2])
    assert book.stop_reason == "every model was given up after repeated failures"
    assert outcome_of(nobody) == (OutcomeKind.UNDECIDED, ())


@pytest.mark.parametrize(("delta", "told"), [(0.05, "95%"), (0.001, "99.9%"), (0.025, "97.5%")])
def test_a_race_that_ends_by_proof_says_how_sure_it_is(delta: float, told: str) -> None:
    truth = np.repeat([[1.0], [0.0]], 60, axis=1)
    sampler = finish(PairedEProcess(design(2, 60), delta=delta), truth)
    assert sampler.stop_reason == f"proved, with {told} confidence"


def test_delta_is_checked() -> None:
    for delta in (0.0, 1.0, -1.0):
        with pytest.raises(InvalidInputError, match="delta"):
            PairedEProcess(design(2, 5), delta=delta)


def history(seed: int, spoil: bool) -> tuple[FactorModel, FloatArray]:
    rng = np.random.default_rng(seed)
    U, V = rng.normal(0, 1.5, 60), rng.normal(0, 1.5, 150)
    scores = (rng.random((60, 150)) < 1 / (1 + np.exp(-U[:, None] - V))).astype(float)
    past = scores[:40, rng.permutation(150)] if spoil else scores[:40]
    return FactorModel.train(past, [f"i{j}" for j in range(150)], rank=1, ridge=1.0), scores[40:]


@pytest.mark.parametrize("anchors", [0, 5])
def test_a_history_that_predicts_worse_than_a_constant_is_dropped_and_said_so(anchors: int) -> None:
    for spoil in (False, True):
        factors, truth = history(1, spoil)
        # of 40 models, five anchors at most: one for every eight
        race = Race(design(20, 150), predictor=factors, anchors=anchors or 6, first=12, seed=1)
        sampler = finish(race, truth, 1200)
        assert sampler._now()[1].has_history != spoil
        assert ("history dropped" in sampler.history_note) == spoil
        # the anchors stay known cells, and what comes after them is not predicted
        draws = sampler.draws(sampler.leader())
        assert draws.known.size == (min(anchors, 4) if spoil else anchors)  # given up after four
        assert bool(draws.prediction.any()) != spoil
        assert truth.mean(axis=1).max() - truth.mean(axis=1)[sampler.leader()] < 0.05


@pytest.mark.parametrize("until_proved", [True, False])
@pytest.mark.parametrize("seed", [0, 1, *map(variant, range(2, 6))])
def test_the_proof_counts_as_known_the_anchors_of_a_history_that_is_dropped(
    seed: int, until_proved: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The history seems good on 4 of 16 anchors, and bad on 8; one model answers nothing."""
    m, n = 12, 24
    monkeypatch.setattr(
        "evalbudget.races.samplers._race.losses",
        lambda _predictor, item, _scores: (0.1, 0.2) if item.size == 4 else (0.3, 0.2),
    )
    rng = np.random.default_rng(seed)
    models = rng.normal(size=(200, 2))
    predictor = FactorModel(design(m, n).items, rng.normal(size=(n, 2)), np.zeros(2), np.eye(2), models)
    truth = (rng.random((m, n)) < 0.5).astype(float)
    sampler = Race(design(m, n), predictor=predictor, until_proved=until_proved, seed=seed)
    played = play(sampler, 10_000, score=lambda c: None if c.model == 3 else truth[c.model, c.item])
    assert played.stopped
    assert "history dropped" in sampler.history_note
    proof = sampler.proof
    assert proof is not None
    assert proof.pool == n - sampler._now()[1].n_anchors == n - 8
    totals = np.delete(truth.sum(axis=1), 3)
    best = {k for k in range(m) if k != 3 and truth[k].sum() == totals.max()}
    if until_proved:
        assert set(outcome_of(sampler).models) == best


def winners_of_ties(make: Any, R: int) -> int:
    """In how many races between two models that each pass half of the items one is called the best."""
    passed, wrong = np.arange(60) < 30, 0
    for seed in range(20, 20 + R):
        rng = np.random.default_rng([seed, 5])
        truth = np.stack([rng.permutation(passed), rng.permutation(passed)]).astype(float)
        wrong += outcome_of(finish(make(design(2, 60), seed=seed), truth)).kind is OutcomeKind.BEST
    return wrong


@pytest.mark.claim
@pytest.mark.parametrize("make", [MADE[0], MADE[1], variant(MADE[2])])
def test_two_tied_models_have_a_winner_with_probability_delta_at_most(make: Any) -> None:
    R = replications(15, 1000)
    wrong = winners_of_ties(make, R)
    binomial_claim(wrong, R, at_most=0.05)
    pinned(wrong, 1)


def adversarial() -> FloatArray:
    """Tied; what the first one fails comes first in the dataset."""
    passed = np.arange(60) >= 30
    return np.stack([passed, ~passed]).astype(float)


def one_item() -> FloatArray:
    """The second one is better by one item of 21 that they differ on."""
    sign = np.where(np.arange(60) < 21, np.where(np.arange(60) % 2, -1.0, 1.0), 0.0)
    return np.stack([(1 - sign) / 2, (1 + sign) / 2])


@pytest.mark.claim
@pytest.mark.parametrize(("world", "right"), [(adversarial, None), variant(one_item, 1)])
def test_a_wrong_winner_with_probability_delta_at_most(world: Any, right: int | None) -> None:
    R = replications(18, 1000)
    wrong = 0
    for seed in range(R):
        outcome = outcome_of(finish(PairedEProcess(design(2, 60), seed=seed), world()))
        wrong += outcome.kind is OutcomeKind.BEST and outcome.models != (right,)
    binomial_claim(wrong, R, at_most=0.05)
    pinned(wrong, 0)


@pytest.mark.claim
def test_too_lax_a_proof_is_found_out() -> None:
    R = replications(15, 200)
    wrong = winners_of_ties(partial(PairedEProcess, delta=0.9), R)
    with pytest.raises(AssertionError, match="claimed to fail"):
        binomial_claim(wrong, R, at_most=0.05)


def test_a_proof_begins_anew_once_for_all_that_are_lost_and_all_that_is_looked_at(monkeypatch: Any) -> None:
    sampler = PairedEProcess(design(6, 40), seed=0)
    book = Book(sampler, Budget(240))
    buy(book, np.ones((6, 40)), 10)
    for model in (1, 2, 3):
        book.withdraw(model, "its task ended")
    begun = []
    begin = sampler.begun_anew
    monkeypatch.setattr(sampler, "begun_anew", lambda *given: begun.append(1) or begin(*given))
    book.look()
    for model in range(6):
        sampler.draws(model)
    assert sampler.lost == {1, 2, 3}
    assert len(begun) == 1
