"""Samplers against literal, independent formulas: each decision is an argmax over all items."""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable

import pytest

from evalbudget import Allocation, Cell, Design, Reading, Request
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
    while sampler.asked < n_requests or in_flight:
        while len(in_flight) < concurrency and sampler.asked < n_requests:
            warm = min(table.read) >= sampler.warmup
            asked = sampler.ask(1)
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
        if sampler.allocation is not Allocation.WEIGHTED or request.weight is not None:
            table.values[request.cell.item].append(value)
        sampler.tell([Reading(request, value)])
    return checked


@pytest.mark.parametrize("concurrency", [1, 5])
def test_robin_against_brute_force(concurrency: int) -> None:
    variances = [0.5, 0.1, 2.0, 0.0, 1.0, 0.3, 0.7]
    sampler = Robin(Design.of_items(K), variances=variances)
    checked = check_every_decision(sampler, lambda t, i: variances[i] / t.asked[i], 150, concurrency)
    assert checked >= 150 - 2 * K


@pytest.mark.parametrize("concurrency", [1, 5])
def test_robin_with_pilot_against_brute_force(concurrency: int) -> None:
    def index(t: Table, i: int) -> float:
        return statistics.variance(t.values[i][:4]) / t.asked[i]

    assert check_every_decision(Robin(Design.of_items(K), pilot=4), index, 150, concurrency) == 150 - 4 * K


@pytest.mark.parametrize("concurrency", [1, 5])
def test_robin_hood_against_brute_force(concurrency: int) -> None:
    delta = 0.007

    def index(t: Table, i: int) -> float:
        n = len(t.values[i])
        v = statistics.pvariance(t.values[i]) / max(1 - math.sqrt(4 * math.log(1 / delta) / n), 1e-3)
        return v / t.asked[i]

    sampler = RobinHood(Design.of_items(K), delta=delta)
    assert sampler.warmup == 20  # the paper's t0
    assert check_every_decision(sampler, index, 300, concurrency) == 300 - 20 * K


def prior(variances: list[float], nu: int) -> tuple[float, float]:
    """m and kappa, from the formulas."""
    m = statistics.fmean(variances)
    q = statistics.fmean(s * s * nu / (nu + 2) for s in variances)
    phi = (q - m * m + statistics.variance(variances) / len(variances)) / m**2
    return m, 2 + 2 / phi if phi > 0.001 else 2000


@pytest.mark.parametrize("hold_out", [False, True])
@pytest.mark.parametrize("concurrency", [1, 5])
@pytest.mark.parametrize("objective", ["worst-item", "mse", "mean"])
def test_eb_bernstein_against_brute_force(objective: str, concurrency: int, hold_out: bool) -> None:
    weights = [1.0, 2.0, 0.5, 1.0, 1.5, 1.0, 3.0] if objective == "mean" else None
    warmup = 3 + hold_out
    t0 = 3  # of these, those that may be looked at

    def index(t: Table, i: int) -> float:
        m, kappa = prior([statistics.variance(t.values[j][:t0]) for j in range(K)], t0 - 1)
        v = (kappa * m + t.ss(i)) / (kappa + len(t.values[i]) - 1)
        n = t.asked[i]
        if objective == "worst-item":
            return math.sqrt(v / n) + math.sqrt(math.log(K)) * math.sqrt(m) / n
        return v * (weights[i] if weights else 1.0) ** 2 / (n * (n + 1))

    sampler = EBBernstein(
        Design.of_items(K), objective=objective, weights=weights, hold_out=hold_out, warmup=warmup
    )
    assert check_every_decision(sampler, index, 200, concurrency) == 200 - warmup * K


def rating(cell: Cell) -> float:
    """1 to 5."""
    return float(min(5, max(1, round(3 + 2 * gaussian(cell)))))


def rating_then_more(cell: Cell) -> float:
    """A new level every now and then, some of them far away."""
    return (
        rating(cell)
        if cell.epoch < 4 or cell.epoch % 3
        else 7.5 + cell.epoch * (1e9 if cell.item == 1 else 1)
    )


def binary(cell: Cell) -> float:
    return float(gaussian(cell) > 0.5)


def kernel_posterior(first: Readings, values: list[float]) -> list[tuple[float, float]]:
    """Levels and probabilities of an item's posterior, straight from the definition."""
    levels = sorted({x for row in first.values() for x in row})
    everything = [x for row in first.values() for x in row]
    g = {a: everything.count(a) / len(everything) for a in levels}
    pairs = {(a, b): 0.0 for a in levels for b in levels}
    for row in first.values():
        for j, a in enumerate(row):
            for k, b in enumerate(row):
                if j != k:
                    pairs[a, b] += 1 / (len(row) * (len(row) - 1))
    agree = sum(pairs[a, a] for a in levels) / sum(pairs.values())
    chance = sum(g[a] ** 2 for a in levels)
    alpha = 1.5 / max((agree - chance) / (1 - chance), 0.005)
    mass: dict[float, float] = {}
    middle, half = (levels[0] + levels[-1]) / 2, (levels[-1] - levels[0]) / 2
    for x in values:
        far = middle + max(-1000.0, min(1000.0, (x - middle) / half)) * half
        mass[far] = mass.get(far, 0.0) + 1
        row_sum = sum(pairs[x, b] + 1e-3 * g[b] for b in levels) if x in levels else 1.0
        for b in levels:
            t = (pairs[x, b] + 1e-3 * g[b]) / row_sum if x in levels else g[b]
            mass[b] = mass.get(b, 0.0) + alpha * t / len(values)
    total = len(values) + alpha
    return [(x, p / total) for x, p in mass.items()]


@pytest.mark.parametrize("concurrency", [1, 5])
@pytest.mark.parametrize("objective", ["worst-item", "mse", "mean"])
@pytest.mark.parametrize("hold_out", [False, True])
@pytest.mark.parametrize("score", [rating, rating_then_more, binary])
def test_rating_kernel_against_brute_force(
    score: Callable[[Cell], float], hold_out: bool, objective: str, concurrency: int
) -> None:
    """The posterior as a histogram, with central moments summed over it."""
    weights = [1.0, 2.0, 0.5, 1.0, 1.5, 1.0, 3.0] if objective == "mean" else None
    t0 = 4
    first = {i: [score(Cell(item=i, epoch=e)) for e in range(hold_out, t0)] for i in range(K)}

    def index(t: Table, i: int) -> float:
        posterior = kernel_posterior(first, t.values[i])
        mean = sum(p * x for x, p in posterior)
        v = sum(p * (x - mean) ** 2 for x, p in posterior)
        fourth = sum(p * (x - mean) ** 4 for x, p in posterior)
        n = t.asked[i]
        if objective == "worst-item":
            return float((v**2 / n**2 + 8 * fourth / n**3) ** 0.25)
        return v * (weights[i] if weights else 1.0) ** 2 / (n * (n + 1))

    sampler = RatingKernel(
        Design.of_items(K), objective=objective, weights=weights, hold_out=hold_out, warmup=t0
    )
    assert check_every_decision(sampler, index, 200, concurrency, score) == 200 - t0 * K


def test_rating_kernel_on_a_scale_of_many_levels_is_eb_bernstein() -> None:
    asked = [
        [e.request for e in play(cls(Design.of_items(K), hold_out=False, seed=3), 200)]
        for cls in (EBBernstein, RatingKernel)
    ]
    assert asked[0] == asked[1]  # all scores of the warm-up differ


@pytest.mark.parametrize("objective", ["worst-item", "mse"])
def test_rating_kernel_asks_in_turn_while_items_only_differ_from_each_other(objective: str) -> None:
    sampler = RatingKernel(Design.of_items(K), objective=objective)
    play(sampler, 40 * K, score=lambda c: float(c.item % 3))
    assert set(sampler.counts()) == {40}


@pytest.mark.parametrize("spread", ["equal", "wide"])
def test_variance_prior_against_formulas(spread: str) -> None:
    rng = random.Random(3)
    scale = (lambda i: 1.0) if spread == "equal" else (lambda i: 3.0**i)
    variances = [statistics.variance([rng.gauss(0, scale(i)) for _ in range(5)]) for i in range(8)]
    fitted = VariancePrior.fit(variances, [4] * len(variances))
    assert (fitted.mean, fitted.strength) == pytest.approx(prior(variances, 4))


def test_a_batch_against_water_filling() -> None:
    """Asking b with V frozen equals n_i(lambda) from bisection."""
    sampler = EBBernstein(Design.of_items(K), hold_out=False)
    play(sampler, 60)
    before = list(sampler.counts())
    ss = [sampler.sum_of_squares(i) for i in range(K)]
    table = Table()
    for cell in (Cell(item=i, epoch=e) for i in range(K) for e in range(3)):
        table.values[cell.item].append(gaussian(cell))
    m, kappa = prior([statistics.variance(table.values[i]) for i in range(K)], 2)
    v = [(kappa * m + ss[i]) / (kappa + before[i] - 1) for i in range(K)]
    c = math.sqrt(math.log(K)) * math.sqrt(m)

    def filled(lam: float) -> list[int]:
        root = [(math.sqrt(x) + math.sqrt(x + 4 * lam * c)) / (2 * lam) for x in v]
        return [max(n, math.ceil(r * r)) for n, r in zip(before, root, strict=True)]

    for batch in (1, 10, 100, 1000):
        low, high = 1e-6, 1e6
        for _ in range(200):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if sum(filled(middle)) > sum(before) + batch else (low, middle)
        again = EBBernstein(Design.of_items(K), hold_out=False)
        play(again, 60)
        counts = list(before)
        for request in again.ask(batch):
            counts[request.cell.item] += 1
        assert counts == filled(high)


@pytest.mark.parametrize("budget", [None, 300])
@pytest.mark.parametrize("sampler", [EBBernstein, RatingKernel])
def test_a_budget_changes_weights_and_no_decision(sampler: type[EBBernstein], budget: int | None) -> None:
    plain, other = (
        [e.request for e in play(sampler(Design.of_items(K), budget=b), 200, score=rating)]
        for b in (150, budget)
    )
    assert [r.cell for r in plain] == [r.cell for r in other]
    assert [r.weight for r in plain] != [r.weight for r in other]


def test_binary_scores_get_the_larger_bonus() -> None:
    """c = sqrt(2 ln K) when the warm-up saw two values, sqrt(ln K) when it saw more."""

    def coin(cell: Cell) -> float:
        return float(random.Random(str(cell)).random() < 0.5)

    def ternary(cell: Cell) -> float:
        return 0.5 if cell == Cell() else coin(cell)

    for score, factor in ((coin, 2.0), (ternary, 1.0)):
        mine = EBBernstein(Design.of_items(K), hold_out=False, bonus=math.sqrt(factor * math.log(K)))
        default = EBBernstein(Design.of_items(K), hold_out=False)
        asked = [[e.request for e in play(s, 200, score=score)] for s in (mine, default)]
        assert asked[0] == asked[1]


@pytest.mark.parametrize("sampler", [EBBernstein, RatingKernel, Robin, RobinHood])
def test_items_that_all_agree_are_asked_in_turn(sampler: type[RepeatSampler]) -> None:
    plain = sampler(Design.of_items(K))
    play(plain, 40 * K, score=lambda c: 1.0)
    assert set(plain.counts()) == {40}


def test_one_surprise_after_a_unanimous_warm_up_does_not_take_the_budget() -> None:
    sampler = EBBernstein(Design.of_items(K), hold_out=False)
    play(sampler, 40 * K, score=lambda c: float(c != Cell(item=2, epoch=5)))
    assert set(sampler.counts()) == {40}


def test_extra_adopted_readings_count_with_their_own_degrees_of_freedom() -> None:
    """The prior of ten adopted readings each is that of s^2 with nu = 9, not of the warm-up's nu."""
    sampler = EBBernstein(Design.of_items(K), hold_out=False)
    requests = [sampler.adopt(Cell(item=i, epoch=e)) for e in range(10) for i in range(K)]
    sampler.tell([Reading(r, gaussian(r.cell)) for r in requests])
    given = {i: [gaussian(Cell(item=i, epoch=e)) for e in range(10)] for i in range(K)}
    m, kappa = prior([statistics.variance(given[i]) for i in range(K)], 9)
    index = [
        math.sqrt((kappa * m + 9 * statistics.variance(given[i])) / (kappa + 9) / 10)
        + math.sqrt(math.log(K) * m) / 10
        for i in range(K)
    ]
    assert sampler.ask(1)[0].cell.item == index.index(max(index))
