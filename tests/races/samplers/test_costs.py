"""A race that weighs costs: who is asked how often, and what stays as it was."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from evalbudget import Design
from evalbudget.errors import InvalidInputError
from evalbudget.races.samplers import LUCB, UCBE, PairedEProcess, Pulse, Race, RacingSampler, UniformRacing
from evalbudget.testing import play

N = 6000


def world(means: list[float], *, seed: int = 0, n_items: int = N) -> np.ndarray[Any, Any]:
    """Independent pass or fail, shape (models, items)."""
    rng = np.random.default_rng(seed)
    return (rng.random((len(means), n_items)) < np.array(means)[:, None]).astype(float)


def raced(sampler: RacingSampler, scores: np.ndarray[Any, Any], cost: list[float], cells: int) -> list[int]:
    """Readings of each model after at most so many cells."""
    while sampler.asked < cells and (asked := sampler.next_cells(cells - sampler.asked)) is not None:
        sampler.learn(asked, scores[asked.model, asked.item], np.array(cost)[asked.model])
    return [sampler.n_read(model) for model in range(len(cost))]


def design(n_models: int, n_items: int = N) -> Design:
    return Design(items=tuple(map(str, range(n_items))), models=tuple("abcdefgh"[:n_models]))


def weighing(n_models: int, **options: Any) -> Race:
    sampler = Race(design(n_models), **options)
    sampler.weigh_costs()
    return sampler


@pytest.mark.parametrize("cost", [[16.0, 1.0], [1.0, 16.0]])
def test_of_two_models_readings_follow_the_root_of_the_costs(cost: list[float]) -> None:
    n = raced(weighing(2), world([0.5, 0.5], seed=1), cost, 1000)
    assert n[cost.index(1.0)] / n[cost.index(16.0)] == pytest.approx(4.0, rel=0.2)


def test_without_weighing_costs_they_are_asked_alike() -> None:
    n = raced(Race(design(2)), world([0.5, 0.5], seed=1), [16.0, 1.0], 1000)
    assert n[0] / n[1] == pytest.approx(1.0, rel=0.2)


def test_of_two_equal_challengers_the_cheap_one_is_asked_first() -> None:
    scores = world([0.9, 0.6, 0.6], seed=2)
    scores[2] = scores[1]
    n = raced(weighing(3, seed=4), scores, [1.0, 25.0, 0.2], 100)
    assert n[1] < n[2]
    dear_last = raced(weighing(3, seed=4), scores, [1.0, 0.2, 25.0], 100)
    assert dear_last[2] < dear_last[1]


@pytest.mark.parametrize("kind", [UniformRacing, UCBE, Pulse, LUCB, PairedEProcess])
def test_literal_samplers_and_proofs_go_on_by_counts(kind: type[RacingSampler]) -> None:
    scores = world([0.6, 0.55, 0.5], n_items=300)
    found = []
    for weighs in (False, True):
        sampler = kind(design(3, 300))
        if weighs:
            sampler.weigh_costs()
        found.append(raced(sampler, scores, [1.0, 30.0, 0.1], 600))
    assert found[0] == found[1]


def test_costs_come_one_per_cell() -> None:
    sampler = weighing(2)
    cells = sampler.next_cells()
    assert cells is not None
    with pytest.raises(InvalidInputError, match="costs of shape"):
        sampler.learn(cells, np.zeros(len(cells)), np.ones(1))


def test_whole_steps_and_single_requests_weigh_the_same_costs() -> None:
    scores, cost = world([0.6, 0.55, 0.5], n_items=200), [1.0, 30.0, 0.1]
    rounds, single = (Race(design(3, 200), seed=3) for _ in range(2))
    for sampler in (rounds, single):
        sampler.weigh_costs()
    read = raced(rounds, scores, cost, 300)
    play(single, 300, score=lambda c: float(scores[c.model, c.item]), cost=lambda c: cost[c.model])
    assert [single.n_read(model) for model in range(3)] == read


@pytest.mark.variant
def test_a_leader_is_named_right_as_often_for_less() -> None:
    rng = np.random.default_rng(5)
    right = {False: 0, True: 0}
    for seed in range(24):
        cost = np.exp(rng.normal(0.0, 1.175, 20))
        scores = world(list(rng.uniform(0.3, 0.7, 20)), seed=100 + seed, n_items=300)
        for weighs in right:
            sampler = Race(design_of(20, 300), seed=seed)
            if weighs:
                sampler.weigh_costs()
            left = 0.04 * 300 * cost.sum()
            while (cells := sampler.next_cells(1)) is not None and cost[cells.model[0]] <= left:
                left -= cost[cells.model[0]]
                sampler.learn(cells, scores[cells.model, cells.item], cost[cells.model])
            if cells is not None:
                sampler.learn(cells, np.full(1, np.nan))
            right[weighs] += int(scores[sampler.leader()].mean() == scores.mean(axis=1).max())
    assert right[True] >= right[False] + 2


def design_of(n_models: int, n_items: int) -> Design:
    return Design(items=tuple(map(str, range(n_items))), models=tuple(map(str, range(n_models))))


def test_challengers_are_taken_by_improvement_over_a_power_of_the_cost() -> None:
    sampler = weighing(4)
    cost, gamma = np.array([1.0, 8.0, 0.5, 3.0]), 1.0 / (1.0 + math.log(4))
    mean, variance = np.array([0.7, 0.65, 0.6, 0.72]), np.array([0.01, 0.02, 0.03, 0.005])
    note = replace(sampler.start(), mean=mean, variance=variance, log_cost=np.log(cost))
    spread = np.sqrt(variance + 0.01)
    z = (0.7 - mean) / spread
    improvement = spread * (norm.pdf(z) - z * norm.sf(z))
    assert sampler._promise(note, 0) == pytest.approx(improvement / cost**gamma)
    by_distance = sampler._behind_per_cost(note, z)
    assert by_distance == pytest.approx(np.sign(z) * z**2 / 2.0 + gamma * np.log(cost))
    assert sampler._behind_per_cost(replace(note, log_cost=np.zeros(4)), z) is z
