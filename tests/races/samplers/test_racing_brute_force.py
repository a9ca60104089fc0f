"""Racing policies against literal, cell-by-cell implementations of their formulas, decision by decision."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.claims import variant
from tests.races.worlds import design, factors, history

from evalbudget import Design
from evalbudget.races.samplers import (
    LUCB,
    UCBE,
    NaivePooling,
    Pulse,
    Race,
    RacingSampler,
    SequentialHalving,
    SuccessiveRejects,
    UniformRacing,
    Visit,
)
from evalbudget.statistics._bounds import FloatArray
from evalbudget.testing import play
from references.outcomes import outcome_of

M, N = 7, 60
DESIGN = design(M, N)
HISTORY = factors(DESIGN.items)
TRAINED = history(N, 0, models=80)


def world(seed: int, m: int = M, n: int = N) -> FloatArray:
    rng = np.random.default_rng(seed)
    level, item = rng.normal(0, 1, (m, 1)), rng.normal(0, 1, (1, n))
    return (rng.random((m, n)) < 1 / (1 + np.exp(-level - item))).astype(float)


def truths() -> Iterator[Any]:
    for seed in range(4):
        marks = [pytest.mark.variant] if seed > 1 else []
        yield pytest.param(world(seed), id=f"world {seed}", marks=marks)
    yield pytest.param(np.zeros((M, N)), id="all 0")
    yield pytest.param(np.ones((M, N)), id="all 1")
    twins = world(9)
    twins[3] = twins[5]
    yield pytest.param(twins, id="two identical models")
    yield pytest.param(world(1) * 0.5 + 0.25 * world(2), id="not binary")


TRUTHS = list(truths())


def rounds_of(sampler: RacingSampler, truth: FloatArray) -> list[dict[int, list[int]]]:
    """What each round asked: model -> items, in order."""
    result = []
    while (cells := sampler.next_cells()) is not None:
        asked: dict[int, list[int]] = {}
        for model, item in zip(cells.model.tolist(), cells.item.tolist(), strict=True):
            asked.setdefault(model, []).append(item)
        result.append(asked)
        sampler.learn(cells, truth[cells.model, cells.item])
    return result


def argmax(values: dict[int, float], sampler: RacingSampler) -> int:
    """Ties by the sampler's own order."""
    return max(values, key=lambda i: (round(values[i], 12), -int(sampler._rank[i])))


@pytest.mark.parametrize("truth", TRUTHS)
def test_ucb_e(truth: FloatArray) -> None:
    sampler = UCBE(DESIGN, a=0.5, batch=8, seed=4)
    seen: dict[int, list[float]] = {}
    for number, asked in enumerate(rounds_of(sampler, truth)):
        if number == 0:
            assert {model: len(items) for model, items in asked.items()} == dict.fromkeys(range(M), 8)
        else:
            index = {i: sum(s) / len(s) + math.sqrt(0.5 / len(s)) for i, s in seen.items() if len(s) < N}
            expected = argmax(index, sampler)
            assert {model: len(items) for model, items in asked.items()} == {
                expected: min(8, N - len(seen[expected]))
            }
        for model, items in asked.items():
            seen.setdefault(model, []).extend(truth[model, items])
    assert all(len(s) == N for s in seen.values())
    assert truth[sampler.leader()].mean() == pytest.approx(truth.mean(axis=1).max())


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("budget", [M + 1, 60, 200, M * N])
def test_successive_rejects(truth: FloatArray, budget: int) -> None:
    sampler = SuccessiveRejects(DESIGN, budget=budget, seed=4)
    asked: dict[int, list[int]] = {i: [] for i in range(M)}
    for each in rounds_of(sampler, truth):
        for model, items in each.items():
            asked[model] += items
    alive, log_bar = set(range(M)), 0.5 + sum(1 / i for i in range(2, M + 1))
    order = asked[sampler.leader()]
    taken = dict.fromkeys(range(M), 0)
    for k in range(1, M):
        n_k = min(N, math.ceil((budget - M) / (log_bar * (M + 1 - k)) - 1e-9))
        if all(taken[i] == N for i in alive):
            break
        for i in alive:
            taken[i] = n_k
        means = {i: -float(truth[i, order[:n_k]].mean()) for i in alive}
        alive.remove(max(alive, key=lambda i: (round(means[i], 12), int(sampler._rank[i]))))
    assert {i: len(items) for i, items in asked.items()} == taken
    assert all(items == order[: len(items)] for items in asked.values()), "not the same items"
    assert sum(taken.values()) <= budget
    assert sampler.leader() in alive
    assert set(sampler.eliminated) == set(range(M)) - alive


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("budget", [M * 3, 60, 200, M * N])
def test_sequential_halving(truth: FloatArray, budget: int) -> None:
    sampler = SequentialHalving(DESIGN, budget=budget, seed=4)
    asked: dict[int, list[int]] = {i: [] for i in range(M)}
    for each in rounds_of(sampler, truth):
        for model, items in each.items():
            asked[model] += items
    alive, spent, n = list(range(M)), 0, 0
    order = asked[sampler.leader()]
    taken = dict.fromkeys(range(M), 0)
    for r in range(3):
        if n == N:
            break
        more = min(N - n, (budget - spent) // (len(alive) * (3 - r)))
        n, spent = n + more, spent + more * len(alive)
        taken.update(dict.fromkeys(alive, n))
        means = {i: float(truth[i, order[:n]].mean()) for i in alive}
        alive.sort(key=lambda i: (-round(means[i], 12), int(sampler._rank[i])))
        alive = alive[: (len(alive) + 1) // 2]
    assert {i: len(items) for i, items in asked.items()} == taken
    assert spent <= budget
    assert sampler.leader() == alive[0]


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize("margin", [0.0, 0.2])
def test_lucb(truth: FloatArray, margin: float) -> None:
    sampler = LUCB(DESIGN, batch=5, delta=0.3, margin=margin, seed=4)
    seen: dict[int, list[float]] = {}
    rounds = 0

    def bounds(i: int) -> tuple[float, float]:
        s = seen[i]
        radius = (
            math.sqrt(math.log(1.25 * M * max(1, rounds) ** 4 / 0.3) / (2 * len(s))) if len(s) < N else 0.0
        )
        return sum(s) / len(s) - radius, sum(s) / len(s) + radius

    def duel() -> tuple[int, int]:
        alive = [i for i in seen if i not in out]
        leader = argmax({i: sum(seen[i]) / len(seen[i]) for i in alive}, sampler)
        return leader, argmax({i: bounds(i)[1] for i in alive if i != leader}, sampler)

    out: set[int] = set()
    for asked in rounds_of(sampler, truth):
        if rounds:
            expected = {i: min(5, N - len(seen[i])) for i in duel() if len(seen[i]) < N}
            assert {model: len(items) for model, items in asked.items()} == expected
        for model, items in asked.items():
            seen.setdefault(model, []).extend(truth[model, items])
        rounds += 1
        leader, challenger = duel()
        gap = bounds(challenger)[1] - bounds(leader)[0]
        out |= {i for i in seen if bounds(i)[1] < bounds(leader)[0] - 1e-12}
    assert gap <= margin + 1e-12
    best = truth.mean(axis=1).max()
    kind, models = outcome_of(sampler)
    assert kind != "undecided"
    assert all(truth[i].mean() >= best - max(margin, 1e-9) for i in models if kind != "equivalent")
    assert leader in models


@pytest.mark.parametrize("truth", TRUTHS)
@pytest.mark.parametrize(
    ("name", "t0"), [("naive-pooling", 1), ("corrected", 1), ("published", 1), ("published", 2)]
)
def test_pulse_and_naive_pooling(truth: FloatArray, name: str, t0: int) -> None:
    model_of_history, tau, b, pooled = HISTORY, 3, 8, name == "naive-pooling"
    sampler_class: Any = NaivePooling if pooled else partial(Pulse, coefficient=name)
    sampler = sampler_class(DESIGN, predictor=model_of_history, a=0.5, tau=tau, t0=t0, batch=b, seed=4)
    seen: dict[int, list[int]] = {i: [] for i in range(M)}
    thetas: dict[int, list[float]] = {i: [] for i in range(M)}
    totals: dict[int, list[float]] = {i: [] for i in range(M)}
    u = dict.fromkeys(range(M), model_of_history.prior_mean)
    dirty: set[int] = set()

    def predicted(i: int, items: list[int]) -> FloatArray:
        return model_of_history.predict(u[i])[np.array(items, dtype=int)]

    def estimate(i: int) -> float:
        if not pooled:
            return sum(thetas[i]) / len(thetas[i])
        unseen = [j for j in range(N) if j not in seen[i]]
        return float((truth[i, seen[i]].sum() + predicted(i, unseen).sum()) / N)

    for number, asked in enumerate(rounds_of(sampler, truth)):
        if number:
            index = {i: estimate(i) + math.sqrt(0.5 / len(seen[i])) for i in range(M) if len(seen[i]) < N}
            assert list(asked) == [argmax(index, sampler)], number
        else:
            assert {i: len(items) for i, items in asked.items()} == dict.fromkeys(range(M), t0 * b)
        for i, items in asked.items():
            unseen = [j for j in range(N) if j not in seen[i]]
            pi = len(items) / len(unseen)
            f_all = predicted(i, unseen)
            F, Phi = f_all.sum(), (f_all**2).sum()
            mean = sum(totals[i]) / len(totals[i]) if totals[i] else 0.0
            lam = min(1.0, max(0.0, 1 - F * mean / (len(unseen) * Phi)))
            if name == "published" and not totals[i]:
                lam = 0.0
            S, f = truth[i, items], predicted(i, items)
            thetas[i].append((truth[i, seen[i]].sum() + lam * F + ((S - lam * f) / pi).sum()) / N)
            totals[i].append(((S - lam * f) / pi).sum() if name == "published" else ((f - S) / pi).sum())
            seen[i] += items
            dirty.add(i)
        if number % tau == 0:
            for i in dirty:
                order = np.array(seen[i])
                u[i] = model_of_history.fit(order, truth[i, order], start=u[i])
            dirty = set()


SAMPLERS: list[Callable[[Design, int], RacingSampler]] = [
    lambda d, seed: UniformRacing(d, seed=seed),
    lambda d, seed: UCBE(d, batch=8, seed=seed),
    lambda d, seed: LUCB(d, batch=8, delta=0.5, seed=seed),
    lambda d, seed: SuccessiveRejects(d, budget=120, seed=seed),
    lambda d, seed: SequentialHalving(d, budget=120, seed=seed),
    lambda d, seed: Pulse(d, batch=8, tau=2, predictor=HISTORY, seed=seed),
    lambda d, seed: Pulse(d, batch=8, tau=2, t0=2, coefficient="published", predictor=HISTORY, seed=seed),
    lambda d, seed: NaivePooling(d, batch=8, tau=2, predictor=HISTORY, seed=seed),
    lambda d, seed: Race(d, batch=8, seed=seed),
    lambda d, seed: Race(d, batch=8, anchors=5, predictor=HISTORY, seed=seed),
    lambda d, seed: Race(d, batch=8, anchors=2, predictor=HISTORY, seed=seed),
    lambda d, seed: Race(d, batch=8, anchors=5, predictor=TRAINED, seed=seed),
    lambda d, seed: Visit(d, batch=8, predictor=TRAINED, seed=seed),
]


@pytest.mark.parametrize("make", SAMPLERS)
@pytest.mark.parametrize("seed", [variant(0), 1, variant(2)])
def test_whole_steps_and_single_requests_decide_the_same(
    make: Callable[[Design, int], RacingSampler], seed: int
) -> None:
    m, n = 5, 40
    truth = world(seed, m, n)
    truth[np.random.default_rng(seed).random(truth.shape) < 0.1] = np.nan
    whole, single = make(design(m, n), seed), make(design(m, n), seed)
    cells = [(m, i) for each in rounds_of(whole, truth) for m, items in each.items() for i in items]
    journal = play(single, 10_000, score=lambda c: float(truth[c.model, c.item]), concurrency=5, together=2)
    assert sorted(cells) == sorted({(r.request.cell.model, r.request.cell.item) for r in journal.readings})
    assert whole.asked == len(cells) <= len(journal.readings)
    assert (whole.leader(), outcome_of(whole), whole.closed) == (
        single.leader(),
        outcome_of(single),
        single.closed,
    )
    assert whole.eliminated.keys() == single.eliminated.keys()
    for model in range(m):
        one, other = whole.draws(model), single.draws(model)
        np.testing.assert_array_equal(one.item, other.item)
        np.testing.assert_array_equal(one.value, other.value)
        np.testing.assert_array_equal(one.prediction, other.prediction)
        np.testing.assert_array_equal(one.unseen_prediction_sum, other.unseen_prediction_sum)
