"""Against the formulas written out with loops, against every order of small pools, and invariances."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications

from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._clustered_mean import clustered_mean
from evalbudget.statistics._paired_test import PairedDraws, UnorderedPairs


def by_loops(
    total: list[float], size: list[int], margin: float, largest: int, pool: int | None, bound: float
) -> list[float]:
    """Capital against "D is at most bound" after each cluster."""
    weights = [0.3, 0.4, 0.1, 0.2]
    capital = list(weights)
    squares, running, items = 0.25, 0.0, 0
    filled_sum, found, certain = 0.0, [], False
    for t, (s, k) in enumerate(zip(total, size, strict=True)):
        variance = squares / (t + 1)
        null = bound if pool is None else (pool * bound - filled_sum) / (pool - t)
        clipped = min(max(null, -1.0), 1.0)
        value = bound if math.isnan(s) else s
        typical = (items + 1.0) / (t + 1) / largest
        grows = 1.0 if pool is None else pool / (pool - t)
        gaps = [times * margin * grows for times in (1.0, 2.0, 4.0)]
        gaps.append(max(filled_sum / (items + 10.0) - clipped, 0.0))
        z = (value - k * clipped) / largest
        for j, gap in enumerate(g * typical for g in gaps):
            stake = min(gap / (variance + gap * gap), 0.9 / max(1.0 + clipped, 1e-12))
            capital[j] *= 1.0 + stake * z
        seen = 0.0 if math.isnan(s) else s
        before = running / (items + 1.0)
        items += k
        running += seen
        squares += (seen - k * before) * (seen - k * running / (items + 1.0)) / largest**2
        filled_sum += value
        certain = certain or (pool is not None and filled_sum - (pool - t - 1) > pool * bound + 1e-9)
        found.append(math.inf if certain else sum(capital))
    return found


def draws(
    total: list[float], size: list[int] | None = None, *, margin: float = 0.1, **more: int | None
) -> PairedDraws:
    return PairedDraws(np.array(total), np.array(size or [1] * len(total)), margin, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("bound", [-0.3, -0.1, 0.0, 0.25])
def test_capital_against_loops(bound: float) -> None:
    rng = np.random.default_rng(1)
    total = rng.uniform(-1, 1, 30).tolist()
    found = np.exp(draws(total).log_capital(bound))
    np.testing.assert_allclose(found, by_loops(total, [1] * 30, 0.1, 1, None, bound), rtol=1e-9)


@pytest.mark.parametrize("bound", [-0.2, 0.0])
def test_capital_of_clusters_against_loops(bound: float) -> None:
    rng = np.random.default_rng(2)
    size = rng.integers(1, 6, 25)
    total = [float(rng.uniform(-k, k)) for k in size.tolist()]
    found = np.exp(draws(total, size.tolist(), margin=0.05, largest=7).log_capital(bound))
    np.testing.assert_allclose(found, by_loops(total, size.tolist(), 0.05, 7, None, bound), rtol=1e-9)


@pytest.mark.parametrize("bound", [-0.1, 0.0, 0.2])
def test_capital_of_a_pool_against_loops(bound: float) -> None:
    rng = np.random.default_rng(3)
    total = rng.choice([-1.0, 0.0, 0.0, 1.0, np.nan], 20).tolist()
    found = np.exp(draws(total, pool=24).log_capital(bound))
    np.testing.assert_allclose(found, by_loops(total, [1] * 20, 0.1, 1, 24, bound), rtol=1e-9)


def test_at_least_is_the_mirror_image() -> None:
    total = np.random.default_rng(4).uniform(-1, 1, 40)
    one, other = draws(total.tolist()), draws((-total).tolist())
    np.testing.assert_allclose(one.log_capital(0.1, at_least=True), other.log_capital(-0.1))


@pytest.mark.parametrize("pool", [(-1.0, 0.0, 1.0, 0.0, 0.5, -0.5), (1.0, -1.0, 1.0, -1.0, 0.0)])
@pytest.mark.parametrize("at_least", [False, True])
def test_capital_is_fair_over_every_order_of_a_pool_at_the_bound(
    pool: tuple[float, ...], at_least: bool
) -> None:
    n, bound = len(pool), float(np.mean(pool))
    orders = [
        np.exp(draws(list(order), pool=n).log_capital(bound, at_least=at_least))
        for order in itertools.permutations(pool)
    ]
    # certain is only what is true
    assert np.isfinite(orders).all()
    np.testing.assert_allclose(np.mean(orders, axis=0), np.ones(n), rtol=1e-9)


def test_capital_against_a_bound_that_is_true_never_grows_on_average() -> None:
    pool = (-1.0, 0.0, 1.0, 0.0, -0.5)
    orders = [np.exp(draws(list(order), pool=5).log_capital(0.0)) for order in itertools.permutations(pool)]
    assert (np.mean(orders, axis=0) <= 1.0 + 1e-12).all()


def test_capital_is_fair_over_every_sequence_of_independent_draws() -> None:
    values, share = (-1.0, 0.0, 1.0), (0.3, 0.5, 0.2)
    mean = sum(v * p for v, p in zip(values, share, strict=True))
    average = np.zeros(5)
    for drawn in itertools.product(range(3), repeat=5):
        chance = math.prod(share[i] for i in drawn)
        average += chance * np.exp(draws([values[i] for i in drawn]).log_capital(mean))
    np.testing.assert_allclose(average, np.ones(5), rtol=1e-9)


def test_the_interval_holds_what_is_not_rejected() -> None:
    some = draws(np.random.default_rng(5).choice([-1.0, 0.0, 0.0, 1.0], 300, p=[0.1, 0.4, 0.4, 0.1]).tolist())
    low, high = some.interval(0.05)
    aim = math.log(20.0)
    assert -0.2 < low < some.mean < high < 0.2
    assert some.evidence(low) >= aim or low == -1.0
    assert some.evidence(low + 0.01) < aim
    assert some.evidence(high, at_least=True) >= aim
    assert some.evidence(high - 0.01, at_least=True) < aim


def test_nothing_read_says_nothing_and_everything_read_says_all() -> None:
    nothing = PairedDraws(np.zeros(0), np.zeros(0, dtype=np.int64), 0.1)
    assert nothing.interval(0.05) == (-1.0, 1.0)
    for failed in (2, 5):  # none of the pool could be compared so far, or none at all
        assert draws([math.nan] * failed, pool=5).interval(0.05) == (-1.0, 1.0)
    assert math.isnan(nothing.mean)
    assert nothing.evidence(0.0) == 0.0
    everything = draws([0.5, math.nan, -1.0], pool=3)
    assert everything.interval(0.05) == (-0.25, -0.25)
    assert everything.items == 2


def test_pairs_without_an_order_depend_on_none_and_are_fair() -> None:
    total = np.array([-1.0, 0.0, 1.0, 0.0, -0.5, 0.5])
    ones = np.ones(6, dtype=np.int64)
    found = UnorderedPairs(total, ones, 0.1).log_capital(-0.1)
    rng = np.random.default_rng(0)
    by_hand = []
    for _ in range(32):
        order = rng.permutation(6)
        by_hand.append(math.exp(draws(total[order].tolist()).log_capital(-0.1)[-1]))
    assert np.exp(found) == pytest.approx([np.mean(by_hand)])
    assert UnorderedPairs(np.zeros(0), ones[:0], 0.1).evidence(0.0) == 0.0
    values, share = (-1.0, 0.0, 1.0), (0.3, 0.5, 0.2)
    mean = sum(v * p for v, p in zip(values, share, strict=True))
    average = 0.0
    for drawn in itertools.product(range(3), repeat=4):
        some = UnorderedPairs(np.array([values[i] for i in drawn]), ones[:4], 0.1)
        average += math.prod(share[i] for i in drawn) * math.exp(some.log_capital(mean)[0])
    assert average == pytest.approx(1.0)


def test_items_needed_are_about_what_it_takes() -> None:
    rng = np.random.default_rng(6)
    small = draws(rng.choice([-1.0, 0.0, 1.0], 200, p=[0.1, 0.8, 0.1]).tolist(), margin=0.05)
    told = small.needed(0.05)
    taken = []
    for _ in range(60):
        path = draws(rng.choice([-1.0, 0.0, 1.0], 6000, p=[0.1, 0.8, 0.1]).tolist(), margin=0.05)
        taken.append(int(np.argmax(path.log_capital(-0.05) >= math.log(20.0))))
    assert 0.6 * told < np.median(taken) < 1.4 * told
    in_threes = draws((3 * small.total).tolist(), [3] * 200, margin=0.05, largest=3)
    assert in_threes.needed(0.05) == pytest.approx(3 * told, rel=0.02)


@pytest.mark.parametrize(
    ("total", "size", "more", "told"),
    [
        ([0.0], [1], {"margin": 0.0}, "margin of 0"),
        ([0.0], [1], {"margin": 1.0}, "margin of 1"),
        ([0.0], [2], {}, "more than the largest"),
        ([0.0], [0], {}, "has no item"),
        ([0.0, 0.0], [1], {}, "do not fit"),
        ([0.0, 0.0], [1, 1], {"pool": 1}, "2 draws of a pool of 1"),
        ([0.0], [2], {"pool": 9, "largest": 2}, "single items"),
    ],
)
def test_what_does_not_fit_is_refused(
    total: list[float], size: list[int], more: dict[str, float], told: str
) -> None:
    with pytest.raises(InvalidInputError, match=told):
        draws(total, size, **more)  # type: ignore[arg-type]


def with_matrix(values: FloatArray, cluster: list[int]) -> tuple[float, float]:
    """CR2 standard error and degrees of freedom, by the matrices of the paper."""
    n = values.size
    x = np.ones((n, 1))
    hat = x @ x.T / n
    residual = values - values.mean()
    meat, columns = 0.0, []
    for g in sorted(set(cluster)):
        rows = np.flatnonzero(np.array(cluster) == g)
        block = np.eye(rows.size) - hat[np.ix_(rows, rows)]
        eigen, vectors = np.linalg.eigh(block)
        root = vectors @ np.diag(eigen**-0.5) @ vectors.T
        meat += float((x[rows].T @ root @ residual[rows]).item() ** 2) / n**2
        columns.append((np.eye(n) - hat)[:, rows] @ root @ x[rows] / n)
    stack = np.hstack(columns)
    eigenvalues = np.linalg.eigvalsh(stack.T @ stack)
    return math.sqrt(meat), float(eigenvalues.sum() ** 2 / (eigenvalues**2).sum())


def test_clustered_mean_against_the_matrices_of_bell_and_mccaffrey() -> None:
    rng = np.random.default_rng(7)
    cluster = [0, 0, 0, 1, 2, 2, 3, 3, 3, 3, 4]
    values = rng.normal(size=len(cluster))
    found = clustered_mean(values, np.array(cluster))
    error, degrees = with_matrix(values, cluster)
    assert found.value == pytest.approx(values.mean())
    assert found.standard_error == pytest.approx(error)
    assert found.degrees == pytest.approx(degrees)
    assert (found.n, found.clusters) == (11, 5)


def test_clusters_of_one_are_the_textbook() -> None:
    values = np.random.default_rng(8).normal(size=20)
    values[3] = np.nan
    found = clustered_mean(values, np.arange(20))
    known = values[~np.isnan(values)]
    assert found.standard_error == pytest.approx(known.std(ddof=1) / math.sqrt(19))
    assert found.degrees == pytest.approx(18)


def test_clustered_mean_of_little() -> None:
    none = clustered_mean(np.array([np.nan]), np.array([0]))
    assert (none.n, math.isnan(none.value)) == (0, True)
    one = clustered_mean(np.array([1.0, 2.0]), np.array([0, 0]))
    assert (one.value, math.isnan(one.standard_error)) == (1.5, True)
    assert clustered_mean(np.full(5, 0.1), np.arange(5)).standard_error == 0.0


@pytest.mark.claim
@pytest.mark.parametrize(("share", "expected"), [(0.1, 1), (0.4, 0)])
def test_the_interval_is_wrong_at_either_end_as_seldom_as_it_says(share: float, expected: int) -> None:
    R = replications(36, 2000)
    rng = np.random.default_rng(9)
    failed = 0
    for _ in range(R):
        path = draws(rng.choice([-1.0, 0.0, 1.0], 300, p=[share, 1 - 2 * share, share]).tolist())
        low, _ = path.interval(0.05)
        failed += low > 0.0
    binomial_claim(failed, R, at_most=0.05)
    pinned(failed, expected)
