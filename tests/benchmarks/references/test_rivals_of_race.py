"""SySRs and paired top-two Thompson sampling against calculations by hand."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from evalbudget import Design
from evalbudget.races.samplers import Race, RacingSampler, SuccessiveRejects
from references.sysrs import SySRs, cells, schedule
from references.top_two import TopTwo, pairs


def table(n_models: int, n_items: int, seed: int = 0) -> np.ndarray:
    chance = np.linspace(0.2, 0.8, n_models)[:, None]
    return (np.random.default_rng(seed).random((n_models, n_items)) < chance).astype(float)


def design(scores: np.ndarray) -> Design:
    m, n = scores.shape
    return Design(items=tuple(map(str, range(n))), models=tuple(map(str, range(m))))


def play(sampler: RacingSampler, scores: np.ndarray, budget: int | None = None) -> list[tuple[int, int]]:
    asked: list[tuple[int, int]] = []
    while budget is None or sampler.asked < budget:
        step = sampler.next_cells(None if budget is None else budget - sampler.asked)
        if step is None:
            break
        asked += zip(step.model.tolist(), step.item.tolist(), strict=True)
        sampler.learn(step, scores[step.model, step.item])
    return asked


def test_rounds_without_saturation_are_the_classical_ones() -> None:
    # log-bar of 3 is 4/3, (15 - 3) / (4/3) = 9: 9/3 and 9/2, rounded up
    assert schedule(15, 3, 20) == (3, 5)
    assert cells((3, 5)) == 3 * 3 + 2 * 2


def test_what_the_last_round_cannot_use_goes_to_the_others() -> None:
    # (72 - 4) / (19/12) = 42.9: wanted are 10.7, 14.3 and 21.5 of 20 items. In proportion 13.003 and 17.3
    # round up to 14 and 18 (72 cells); the next step, 19 items in the second round, would cost 73.
    assert schedule(72, 4, 20) == (14, 18, 20)
    assert cells((14, 18, 20)) == 72
    plain = SuccessiveRejects(design(table(4, 20)), budget=72)
    assert plain._items_by_round == (11, 15, 20)


@pytest.mark.parametrize(("budget", "K", "N"), [(60, 6, 10), (57, 6, 10), (400, 10, 45), (8160, 51, 800)])
def test_no_schedule_costs_more_than_the_budget_or_asks_less_than_the_classical_one(
    budget: int, K: int, N: int
) -> None:
    rounds = schedule(budget, K, N)
    plain = SuccessiveRejects(design(np.zeros((K, N))), budget=budget)._items_by_round
    assert cells(plain) <= cells(rounds) <= budget
    assert np.all(np.asarray(rounds) >= plain)
    assert max(rounds) <= N


def test_a_budget_for_the_whole_grid_reads_it() -> None:
    assert schedule(80, 4, 20) == (20, 20, 20)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_sysrs_is_successive_rejects_where_nothing_is_left_over(seed: int) -> None:
    scores = table(6, 60, seed)
    ours = play(SuccessiveRejects(design(scores), budget=90, seed=seed), scores)
    assert play(SySRs(design(scores), budget=90, seed=seed), scores) == ours


def test_sysrs_spends_what_the_classical_one_leaves() -> None:
    scores = table(4, 20)
    sampler = SySRs(design(scores), budget=72)
    assert len(play(sampler, scores)) == 72
    assert sampler.leader() == int(scores.mean(axis=1).argmax())


def test_pairs_of_equal_models_are_all_alike() -> None:
    leader, challenger = pairs(np.zeros(3), np.ones(3), 30_000, np.random.default_rng(1))
    assert (leader != challenger).all()
    count = np.zeros((3, 3))
    np.add.at(count, (leader, challenger), 1)
    # six pairs, 1/6 each: four standard errors are .009
    np.testing.assert_allclose(count[~np.eye(3, dtype=bool)] / 30_000, 1 / 6, atol=0.009)


def test_a_leader_leads_with_the_probability_that_it_is_the_best() -> None:
    # the difference of two means is N(.5, .25): the first is above with probability Phi(1) = .8413
    leader, challenger = pairs(np.array([0.5, 0.0]), np.array([0.09, 0.16]), 20_000, np.random.default_rng(2))
    assert (leader == 0).mean() == pytest.approx(0.8413, abs=0.011)
    np.testing.assert_array_equal(challenger, 1 - leader)


def test_nobody_else_drawn_the_nearest_in_standard_deviations_challenges() -> None:
    # the second is nearer in points, the third in standard deviations: .6 / .06 = 10 against 500
    mean, variance = np.array([1.0, 0.5, 0.4]), np.array([5e-7, 5e-7, 0.0036])
    leader, challenger = pairs(mean, variance, 5, np.random.default_rng(3))
    assert leader.tolist() == [0] * 5
    assert challenger.tolist() == [2] * 5


def test_a_step_has_the_cells_of_a_batch_and_each_model_its_next_items() -> None:
    scores = table(5, 200)
    sampler = TopTwo(design(scores), batch=8, first=2, seed=4)
    play(sampler, scores, 10)
    for _ in range(5):
        before = sampler._table().drawn
        step = sampler.next_cells()
        assert step is not None
        assert len(step) == 8
        for model in np.unique(step.model):
            begin = before[model]
            expected = sampler.order(0)[begin : begin + (step.model == model).sum()]
            np.testing.assert_array_equal(step.item[step.model == model], expected)
        sampler.learn(step, scores[step.model, step.item])


def test_top_two_asks_the_best_two_most_and_finds_the_best() -> None:
    found = 0
    for seed in range(20):
        scores = table(6, 300, seed)
        sampler = TopTwo(design(scores), seed=seed)
        asked = np.bincount([model for model, _ in play(sampler, scores, 400)], minlength=6)
        assert asked[-2:].sum() > asked[:-2].sum()
        found += sampler.leader() == int(scores.mean(axis=1).argmax())
    assert found >= 17


def believing(mean: list[float], variance: list[float], **options: int) -> Any:
    """Whom it asks of some models in the middle of a race, with this posterior."""
    sampler = TopTwo(design(np.zeros((len(mean), 50))), **options)
    note = replace(sampler.start(), mean=np.array(mean), variance=np.array(variance))
    return partial(sampler._duels, sampler._table(), note)


def test_leader_and_challenger_get_half_each() -> None:
    models, items = believing([0.9, 0.5, 0.1], [1e-8, 1e-6, 1e-8], batch=4000)(np.arange(3))
    assert models.tolist() == [0, 1]
    assert items.sum() == 4000
    assert items[0] == pytest.approx(2000, abs=130)  # four standard errors


def test_who_has_no_items_left_is_not_asked() -> None:
    duels = believing([0.9, 0.5, 0.1], [1e-8, 1e-6, 1e-8], batch=100)
    models, items = duels(np.array([1, 2]))
    assert models.tolist() == [1]
    assert 30 < items[0] < 70  # what the leader would have got is not spent in this step
    models, items = duels(np.array([2]))  # neither of the two
    assert (models.tolist(), items.tolist()) == ([2], [100])


def test_items_used_up_are_not_asked_again() -> None:
    scores = table(3, 12)
    scores[1] = scores[2]
    sampler = TopTwo(design(scores), batch=4, first=2, seed=1)
    asked = play(sampler, scores)
    assert len(asked) == len(set(asked))
    assert sampler.leader() in (1, 2)
    assert isinstance(sampler, Race)
