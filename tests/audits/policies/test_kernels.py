"""The kernels against plain loops that follow the formulas term by term."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from evalbudget.audits._always_valid_evidence import (
    GAMMA,
    STEPS,
    Audited,
    AuditedMeans,
    mixture,
    pair_bets,
    pair_evidence,
    pair_range,
    reach,
)
from references.sequences import WatchedSequences

RNG = np.random.default_rng(0)
M = RNG.random((7, 3))
PI = RNG.uniform(0.1, 1.0, (7, 3))
WANTED = (RNG.random((7, 3)) < PI).astype(float)
Y = np.where(WANTED > 0, RNG.random((7, 3)), np.nan)


def test_z_is_the_prediction_corrected_by_the_label_over_its_propensity() -> None:
    z = Audited.of(M, PI, WANTED, Y)
    for t, k in itertools.product(range(7), range(3)):
        expected = M[t, k] + ((Y[t, k] - M[t, k]) / PI[t, k] if WANTED[t, k] else 0.0)
        assert z.low[t, k] == pytest.approx(expected)
        assert z.high[t, k] == z.low[t, k]


def test_a_label_that_never_came_is_0_below_and_1_above() -> None:
    z = Audited.of(np.array([[0.3]]), np.array([[0.5]]), np.ones((1, 1)), np.array([[np.nan]]))
    assert z.low[0, 0] == pytest.approx(0.3 + (0.0 - 0.3) / 0.5)
    assert z.high[0, 0] == pytest.approx(0.3 + (1.0 - 0.3) / 0.5)


def test_z_has_the_mean_of_the_labels_whatever_prediction_and_propensity() -> None:
    """Exact expectation over the coin."""
    for m, pi, y in itertools.product((0.0, 0.4, 1.0), (0.05, 0.5, 1.0), (0.0, 0.3, 1.0)):
        heads, tails = (
            Audited.of(np.array([[m]]), np.array([[pi]]), np.array([[a]]), np.array([[y]])).low[0, 0]
            for a in (1.0, 0.0)
        )
        assert pi * heads + (1.0 - pi) * tails == pytest.approx(y)


@pytest.mark.parametrize("disjoint", [False, True])
def test_no_cell_coin_or_label_goes_beyond_the_range(disjoint: bool) -> None:
    """Brute force over every cell, coin and extreme label: the bound holds and is attained."""
    m = np.array([[0.2, 0.9], [0.6, 0.1]])
    pi = np.array([[0.4, 0.3], [0.5, 0.25]])
    a, b = reach(m, pi)
    width = pair_range(a, b, np.full((2, 2), disjoint))
    worst = -math.inf
    for c, d, ai, aj, yi, yj in itertools.product((0, 1), (0, 1), (0, 1), (0, 1), (0.0, 1.0), (0.0, 1.0)):
        if disjoint and ai and aj:
            continue
        zi = m[0, c] + (ai / pi[0, c]) * (yi - m[0, c])
        zj = m[1, d] + (aj / pi[1, d]) * (yj - m[1, d])
        worst = max(worst, zj - zi)
    assert worst <= width[0, 1] + 1e-12
    if not disjoint:
        assert worst == pytest.approx(width[0, 1])
    bets = pair_bets(np.full((2, 2), 1e-6), width)
    assert (1.0 - bets[0, 1] * worst >= 1.0 - GAMMA - 1e-9).all()


def test_pair_evidence_against_a_loop() -> None:
    z = Audited.of(M, PI, WANTED, Y)
    bets = pair_bets(np.full((3, 3), 0.3), np.full((3, 3), 12.0))
    for margin in (0.0, 0.1):
        found = mixture(pair_evidence(z, bets, margin))
        for i, j in itertools.product(range(3), range(3)):
            total = np.zeros(STEPS.size)
            for step, d in enumerate(STEPS):
                lam = min(d / (0.3 + d * d), GAMMA / 12.0)
                product = 1.0
                for t in range(7):
                    product *= 1.0 + lam * (z.low[t, i] - z.high[t, j] + margin)
                total[step] = product
            assert found[-1, i, j] == pytest.approx(total.mean())


def test_a_fully_audited_mean_is_a_betting_sequence() -> None:
    """With pi = 1, Z is the label: the interval agrees with the betting kernel's, bets being alike."""
    y = np.random.default_rng(1).beta(4, 2, 400)
    means = AuditedMeans(1)
    means.update(0, y, y, float(y.var()), 0.0, 1.0)
    low, high = means.interval(0, 0.05)
    plain = WatchedSequences(1)
    for value in y:
        plain.update([0], [value])
    bounds = plain.intervals(0.95)
    assert low <= y.mean() <= high
    assert high - low == pytest.approx(float(bounds.width[0]), rel=0.25)


def test_audited_means_against_a_loop() -> None:
    from evalbudget.statistics._anytime_betting import RHO

    rng = np.random.default_rng(2)
    m, pi = 0.6, 0.3
    z = np.where(rng.random(50) < pi, m + (rng.random(50) - m) / pi, m)
    a, b = m * (1 / pi - 1), m + (1 - m) / pi
    means = AuditedMeans(1, grid=33)
    means.update(0, z[:20], z[:20], 0.2, a, b)  # in two parts, as batches come
    means.update(0, z[20:], z[20:], 0.2, a, b)
    rejected: list[list[float]] = [[], []]
    for candidate in np.arange(33) / 32:
        for side, sign in enumerate((1.0, -1.0)):
            room = a + candidate if side == 0 else b - candidate
            bets = [min(rho / math.sqrt(0.2), GAMMA / room) for rho in RHO]
            capital, peak = [1.0] * len(bets), 1.0
            for value in z:
                capital = [
                    c * (1 + lam * sign * (value - candidate)) for c, lam in zip(capital, bets, strict=True)
                ]
                peak = max(peak, sum(capital) / len(capital))
            if peak >= 2 / 0.3:
                rejected[side].append(float(candidate))
    expected = max(rejected[0], default=0.0), min(rejected[1], default=1.0)
    assert means.interval(0, 0.3) == pytest.approx(expected)
