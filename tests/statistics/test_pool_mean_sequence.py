from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from evalbudget.statistics._pool_mean_sequence import (
    ControlledDraws,
    controlled_betting,
)
from references.controlled import controlled_bernstein
from references.empirical_bernstein import empirical_bernstein_intervals
from references.without_replacement import without_replacement_intervals

Floats = NDArray[np.float64]


def make(
    scores: Floats, f: Floats, t: int, *, known: int = 0, low: float = 0.0, high: float = 1.0
) -> ControlledDraws:
    """Items in order of drawing, the first ``known`` of them anchors."""
    rest, g = scores[known:], f[known:]
    left = np.cumsum(g[::-1])[::-1]
    return ControlledDraws(
        known_count=int((~np.isnan(scores[:known])).sum()),
        known_sum=float(np.nansum(scores[:known])),
        pool=rest.size,
        value=rest[:t],
        prediction=g[:t],
        unseen_mean=(left / np.arange(rest.size, 0, -1))[:t],
        low=np.full(t, low),
        high=np.full(t, high),
    )


def naive_slope(past: list[tuple[float, float]]) -> float:
    n = len(past)
    if n == 0:
        return 1.0
    s, f = [p[0] for p in past], [p[1] for p in past]
    ms, mf = sum(s) / n, sum(f) / n
    own = sum((b - mf) ** 2 for b in f)
    slope = sum((a - ms) * (b - mf) for a, b in past) / own if own > 1e-9 else 1.0
    return min(1.0, max(0.0, (n * slope + 8.0) / (n + 8.0)))


def naive_peak(draws: ControlledDraws, m: float, *, upper: bool) -> float:
    """Largest capital against the mean m, one draw after the other."""
    read: list[tuple[float, float]] = []
    residuals: list[float] = []
    squares, peak, capital = 0.25, 1.0, [1.0] * 6
    total, count = draws.known_sum, draws.known_count
    for t in range(draws.value.size):
        s, f, fbar = draws.value[t], draws.prediction[t], draws.unseen_mean[t]
        left = draws.pool - t
        beta = naive_slope(read)
        n = count + left
        mean = (n * m - total) / left
        value = m if math.isnan(s) else s
        r = value - beta * (f - fbar)
        bottom, top = -beta * (draws.high[t] - fbar), 1 + beta * (fbar - draws.low[t])
        assert bottom - 1e-9 <= r <= top + 1e-9
        room = top - mean if upper else mean - bottom
        gap = mean - r if upper else r - mean
        for j in range(6):
            variance = squares / (len(read) + 1)
            first = 0.5 ** (j + 1) * math.sqrt(variance)
            late = first * draws.pool / left
            bet = late / (variance + late**2 - first**2)
            capital[j] *= 1 + min(bet, 0.9 / room) * gap
        peak = max(peak, sum(capital) / 6)
        if not math.isnan(s):
            residuals.append(r)
            squares += (r - (0.5 + sum(residuals)) / (len(residuals) + 1)) ** 2
            read.append((s, f))
            total += s
            count += 1
    return peak


def world(seed: int, N: int = 60, failing: float = 0.0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.7, N)
    scores = np.where(rng.random(N) < 0.3, p, (rng.random(N) < p).astype(float))
    f = np.clip(p + rng.normal(0, 0.1, N), 0, 1)
    return np.where(rng.random(N) < failing, np.nan, scores), f


@pytest.mark.parametrize("failing", [0.0, 0.15])
@pytest.mark.parametrize("seed", range(6))
def test_ends_against_a_naive_loop(seed: int, failing: float) -> None:
    scores, f = world(seed, failing=failing)
    draws = make(scores, f, 40, known=seed % 3 * 2)
    alpha = 0.3
    low, high = controlled_betting(draws, alpha, draws.slopes())
    floor, ceiling = draws.limits()
    step = 0.01
    if low > floor:
        assert naive_peak(draws, low, upper=False) >= 2 / alpha * (1 - 1e-9)
    assert naive_peak(draws, max(low + step, floor + 1e-9), upper=False) < 2 / alpha
    if high < ceiling:
        assert naive_peak(draws, high, upper=True) >= 2 / alpha * (1 - 1e-9)
    assert naive_peak(draws, min(high - step, ceiling - 1e-9), upper=True) < 2 / alpha


@pytest.mark.parametrize("t", [0, 1, 17, 59, 60])
def test_constant_predictions_against_plain_sequences(t: int) -> None:
    scores, _ = world(3)
    draws = make(scores, np.full(60, 0.4), t, low=0.4, high=0.4)
    plain = without_replacement_intervals(scores[:t], [t], [60], 0.9, grid=8193, dtype=np.float64)
    low, high = controlled_betting(draws, 0.1, draws.slopes())
    assert low == pytest.approx(plain.low[0], abs=0.004)
    assert high == pytest.approx(plain.high[0], abs=0.004)
    closed = empirical_bernstein_intervals(scores[:t], [t], 0.9, pool_sizes=[60])
    assert controlled_bernstein(draws, 0.1, draws.slopes()) == pytest.approx(
        (closed.low[0], closed.high[0]), abs=1e-9
    )


def test_exhausted_pool_is_exact() -> None:
    scores, f = world(1, failing=0.2)
    draws = make(scores, f, 55, known=5)
    mean = float(np.nanmean(scores))
    assert controlled_betting(draws, 0.05, draws.slopes()) == pytest.approx((mean, mean), abs=1e-12)
    assert controlled_bernstein(draws, 0.05, draws.slopes()) == pytest.approx((mean, mean), abs=1e-12)


def test_everything_failed() -> None:
    low, high = controlled_betting(make(np.full(9, np.nan), np.full(9, 0.5), 9), 0.05, np.ones(9))
    assert math.isnan(low)
    assert math.isnan(high)
    assert controlled_betting(make(np.full(9, np.nan), np.full(9, 0.5), 5), 0.05, np.ones(5)) == (0.0, 1.0)


def test_good_predictions_shorten_and_bad_ones_are_soon_ignored() -> None:
    rng = np.random.default_rng(5)
    p = np.where(rng.random(3000) < 0.5, 0.97, 0.03)
    scores = (rng.random(3000) < p).astype(float)

    def width(f: Floats) -> float:
        draws = make(scores, f, 600)
        low, high = controlled_betting(draws, 0.05, draws.slopes())
        return high - low

    plain = width(np.full(3000, 0.5))
    assert width(p) < 0.55 * plain
    assert width(rng.random(3000)) < 1.1 * plain
    assert width(1 - p) < 1.1 * plain


def test_slopes_look_back_only() -> None:
    scores, f = world(2, failing=0.1)
    whole = make(scores, f, 60).slopes()
    changed = scores.copy()
    changed[30:] = 1 - changed[30:]
    np.testing.assert_array_equal(make(changed, f, 60).slopes()[:31], whole[:31])
    past = [(s, g) for s, g in zip(scores[:30], f[:30], strict=True) if not np.isnan(s)]
    assert whole[30] == pytest.approx(naive_slope(past))


@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0, math.nan]), st.floats(0, 1)), min_size=1, max_size=25),
    st.integers(0, 25),
    st.integers(0, 4),
)
@settings(max_examples=150, deadline=None)
def test_ends_are_ordered_and_possible(cells: list[tuple[float, float]], t: int, known: int) -> None:
    scores, f = np.array([c[0] for c in cells]), np.array([c[1] for c in cells])
    known = min(known, scores.size - 1)
    draws = make(scores, f, min(t, scores.size - known), known=known)
    floor, ceiling = draws.limits()
    for kernel in (controlled_betting, controlled_bernstein):
        low, high = kernel(draws, 0.1, draws.slopes())
        if not math.isnan(low):
            assert floor - 1e-12 <= low <= high <= ceiling + 1e-12
