"""What no unread item can change, against every way in which they may turn out."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from tests.races.estimates.drawn import draw

from evalbudget.missing import Missing
from evalbudget.races._draws import ModelDraws
from evalbudget.races.estimates._certain import certainly_beaten, exact_ties
from evalbudget.statistics._bounds import FloatArray, IntArray

N = 5


def drawn(
    scores: FloatArray, lengths: tuple[int, ...], order: FloatArray, anchors: int = 0
) -> list[ModelDraws]:
    return [
        draw(row, np.full(N, 0.5), n, order=order.astype(np.int64), n_anchors=anchors)
        for row, n in zip(scores, lengths, strict=True)
    ]


def completions(
    scores: FloatArray, draws: list[ModelDraws], missing: Missing, anchors: IntArray
) -> list[FloatArray]:
    """Every table that agrees with what was read; unread cells are 0, 1 or, where it says something, nan."""
    known = np.full(scores.shape, np.inf)
    for row, d in zip(known, draws, strict=True):
        row[d.item] = d.value
        row[d.known_item] = d.known
        if d.exhausted:
            row[np.isinf(row)] = np.nan
    if missing is Missing.ZERO:
        known[:, anchors] = scores[:, anchors]  # those that were answered, and those that failed
    cells = np.argwhere(np.isinf(known))
    tables = []
    may_fail = missing is Missing.DROP and any(d.n_missing(N) for d in draws)
    for values in product([0.0, 1.0, np.nan] if may_fail else [0.0, 1.0], repeat=len(cells)):
        table = known.copy()
        table[tuple(cells.T)] = values
        tables.append(table)
    return tables


def lead(table: FloatArray, a: int, b: int, missing: Missing) -> float:
    low, high = missing.ends(table)
    return float(np.nansum(low[a] - high[b]))


@pytest.mark.parametrize("missing", list(Missing))
@pytest.mark.parametrize("failures", [False, True])
@pytest.mark.parametrize("anchors", [0, 2])
def test_against_every_completion(failures: bool, anchors: int, missing: Missing) -> None:
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(40):
        scores = (rng.random((3, N)) < np.array([[0.95], [0.6], [0.1]])).astype(float)
        if failures:
            scores[rng.random(scores.shape) < 0.2] = np.nan
        order = rng.permutation(N)
        lengths = tuple(int(n) for n in rng.integers(N - anchors - 2, N - anchors + 1, size=3))
        draws = drawn(scores, lengths, order, anchors)
        tables = completions(scores, draws, missing, order[:anchors])
        beaten = certainly_beaten(draws, range(3), N, missing)
        always = {
            b
            for b in range(3)
            if any(a != b and all(lead(t, a, b, missing) > 1e-9 for t in tables) for a in range(3))
        }
        assert beaten == always
        found += len(beaten)
    assert found > 20


def test_ties_are_of_models_read_in_full() -> None:
    a = np.array([1.0, 0.0, 1.0, 0.0, 0.1 + 0.2])
    b = np.array([0.3, 1.0, 0.0, 0.0, 1.0])  # the same sum, but for rounding
    order = np.arange(N)
    assert exact_ties(drawn(np.vstack([a, b]), (N, N), order), {0, 1}, N)
    assert not exact_ties(drawn(np.vstack([a, b]), (N, N - 1), order), {0, 1}, N)
    assert not exact_ties(drawn(np.vstack([a, b + np.eye(N)[2] / 10]), (N, N), order), {0, 1}, N)
    # an item that failed for one says nothing of the other
    failed = a.copy()
    failed[0] = np.nan
    assert not exact_ties(drawn(np.vstack([failed, b]), (N, N), order), {0, 1}, N, Missing.DROP)
    assert exact_ties(drawn(np.vstack([failed, a]), (N, N), order), {0, 1}, N, Missing.DROP)
    # or may make either of them better; or is an answer of 0
    assert not exact_ties(drawn(np.vstack([failed, a]), (N, N), order), {0, 1}, N)
    zero = np.where(np.isnan(failed), 0.0, a)
    assert exact_ties(drawn(np.vstack([failed, zero]), (N, N), order), {0, 1}, N, Missing.ZERO)
