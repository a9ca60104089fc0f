"""Samplers against literal, independent formulas: each decision is an argmax over all items."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable

import numpy as np
import pytest
from tests.asking import Asking, counts_of
from tests.claims import replications

from evalbudget import Cell, Design, Reading, Request
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.samplers import EBBernstein, RatingKernel, RepeatSampler, Robin, RobinHood
from evalbudget.statistics._shrinkage import VariancePrior
from evalbudget.testing import gaussian, play

K = 7
Readings = dict[int, list[float]]


class Table:
    """What is known at one decision, in plain lists."""

    def __init__(self) -> None:
        self.values: Readings = {i: [] for i in range(K)}  # what may be looked at
        self.asked = [0] * K
        self.read = [0] * K

    def ss(self, i: int) -> float:
        mean = statistics.fmean(self.values[i])
        return math.fsum((x - mean) ** 2 for x in self.values[i])


def check_every_decision(
    sampler: RepeatSampler,
    index: Callable[[Table, int], float],
    n_requests: int,
    concurrency: int,
    score: Callable[[Cell], float] = gaussian,
) -> int:
    """Play; every decision after the warm-up must be a maximum of ``index``. How many were checked."""
    table, rng, checked = Table(), random.Random(0), 0
    in_flight: list[Request] = []
    book = Asking(sampler)
    while book.asked < n_requests or in_flight:
        while len(in_flight) < concurrency and book.asked < n_requests:
            warm = min(table.read) >= sampler.warmup
            asked = book.ask(1)
            if not asked:
                break
            item = asked[0].cell.item
            if warm:
                values = [index(table, i) for i in range(K)]
                assert values[item] == pytest.approx(max(values), rel=1e-9)
                checked += 1
            table.asked[item] += 1
            in_flight.append(asked[0])
        request = in_flight.pop(rng.randrange(len(in_flight)))
        value = score(request.cell)
        table.read[request.cell.item] += 1
        table.values[request.cell.item].append(value)
        book.tell([Reading(request, value)])
    return checked


@pytest.mark.parametrize("concurrency", [1, 5])
def test_robin_against_brute_force(concurrency: int) -> None:
    variances = [0.5, 0.1, 2.0, 0.0, 1.0, 0.3, 0.7]
    sampler = Robin(Design.of_items(K), variances=variances)
    checked = check_every_decision(sampler, lambda t, i: variances[i] / t.asked[i], 150, concurrency)
    assert checked >= 150 - 3 * K


@pytest.mark.parametrize("concurrency", [1, 5])
def test_robin_with_pilot_against_brute_force(concurrency: int) -> None:
    def index(t: Table, i: int) -> float:
        return statistics.variance(t.values[i][:4]) / t.asked[i]

    assert check_every_decision(Robin(Design.of_items(K), pilot=4), index, 150, concurrency) == 150 - 4 * K


@pytest.mark.parametrize("concurrency", [1, 5])
def test_robin_hood_against_brute_force(concurrency: int) -> None:
    delta = 0.007

    def index(t: Table, i: int) -> float:
        n = t.asked[i]
        v = statistics.pvariance(t.values[i]) / max(1 - math.sqrt(4 * math.log(1 / delta) / n), 1e-3)
        return v / n

    sampler = RobinHood(Design.of_items(K), delta=delta, per_round=1)
    assert sampler.warmup == 20  # the paper's t0
    assert check_every_decision(sampler, index, 300, concurrency) == 300 - 20 * K


def prior(variances: list[float], nu: int) -> tuple[float, float]:
    """m and kappa, from the formulas."""
    m = statistics.fmean(variances)
    q = statistics.fmean(s * s * nu / (nu + 2) for s in variances)
    phi = (q - m * m + statistics.variance(variances) / len(variances)) / m**2
    return m, 2 + 2 / phi if phi > 0.001 else 2000


@pytest.mark.parametrize("objective", ["worst-item", "mse"])
def test_rating_kernel_asks_in_turn_while_items_only_differ_from_each_other(objective: str) -> None:
    sampler = RatingKernel(Design.of_items(K), objective=objective)
    played = play(sampler, 40 * K, score=lambda c: float(c.item % 3))
    assert set(counts_of(played, K)) == {40}


@pytest.mark.parametrize("spread", ["equal", "wide"])
def test_variance_prior_against_formulas(spread: str) -> None:
    rng = random.Random(3)
    scale = (lambda i: 1.0) if spread == "equal" else (lambda i: 3.0**i)
    variances = [statistics.variance([rng.gauss(0, scale(i)) for _ in range(5)]) for i in range(8)]
    fitted = VariancePrior.fit(variances, [4] * len(variances))
    assert (fitted.mean, fitted.strength) == pytest.approx(prior(variances, 4))


@pytest.mark.parametrize("sampler", [EBBernstein, RatingKernel, Robin, RobinHood])
def test_items_that_all_agree_are_asked_in_turn(sampler: type[RepeatSampler]) -> None:
    plain = sampler(Design.of_items(K))
    assert set(counts_of(play(plain, 40 * K, score=lambda c: 1.0), K)) == {40}


def test_robin_hood_in_rounds_is_as_good_as_reading_by_reading() -> None:
    def worst(seed: int, per_round: int | None) -> float:
        spread = np.exp(np.random.default_rng(seed).normal(0.0, 1.0, 20))
        sampler = RobinHood(Design.of_items(20), seed=seed, per_round=per_round)
        book = ArrayBook(sampler)
        while book.n < 800 and (asked := book.ask(800 - book.n)) is not None:
            cells = zip(asked.item.tolist(), asked.epoch.tolist(), strict=True)
            book.tell(spread[asked.item] * [gaussian(Cell(0, *cell)) for cell in cells])
        return float((spread / np.sqrt(book.bought().counts)).max())

    ratios = [worst(seed, None) / worst(seed, 1) for seed in range(replications(6, 12))]
    assert abs(statistics.fmean(ratios) - 1.0) < 0.01
