from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.statistics import oracles

from evalbudget.errors import InvalidInputError
from references.empirical_bernstein import EmpiricalBernsteinSequences, Kind, empirical_bernstein_intervals


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=25),
    st.sampled_from(["bernstein", "hoeffding"]),
    st.sampled_from([0, 1, 30]),
)
def test_intervals_against_wsr_formula(x: list[float], kind: Kind, unread: int) -> None:
    pool = len(x) + unread if unread else None
    found = empirical_bernstein_intervals(
        x,
        [len(x)],
        0.9,
        kind=kind,
        pool_sizes=None if pool is None else [pool],
    )
    low, high = oracles.plug_in(x, 0.1, kind, pool)
    if pool is not None:
        low, high = max(low, sum(x) / pool), min(high, (sum(x) + unread) / pool)
    if low <= high:
        assert (found.low[0], found.high[0]) == pytest.approx((low, high), abs=1e-9)


@pytest.mark.parametrize(
    ("n", "bernstein", "hoeffding"),
    [(50, 0.48367, 0.38951), (200, 0.23873, 0.21577), (1000, 0.12234, 0.1185)],
)
def test_width_on_coin_flips_against_itself(n: int, bernstein: float, hoeffding: float) -> None:
    x = (np.random.default_rng(0).random((60, n)) < 0.5).astype(float).ravel()
    assert empirical_bernstein_intervals(x, [n] * 60).width.mean() == pytest.approx(bernstein, abs=5e-4)
    found = empirical_bernstein_intervals(x, [n] * 60, kind="hoeffding")
    assert found.width.mean() == pytest.approx(hoeffding, abs=5e-4)


def test_incremental_against_batch() -> None:
    rng = np.random.default_rng(1)
    lengths = rng.integers(0, 20, 30)
    rows = [rng.integers(0, 5, n).astype(float) for n in lengths]
    batch = empirical_bernstein_intervals(np.concatenate(rows), lengths, bounds=(0, 4), simultaneous=True)
    sequences = EmpiricalBernsteinSequences(30, bounds=(0, 4), simultaneous=True)
    for i in rng.permutation(np.repeat(np.arange(30), lengths)):
        sequences.update([i], [rows[i][sequences.n[i]]])
    np.testing.assert_array_equal(batch.low, sequences.intervals().low)
    np.testing.assert_array_equal(batch.high, sequences.intervals().high)


def test_unusable_calls() -> None:
    with pytest.raises(InvalidInputError, match="unknown"):
        EmpiricalBernsteinSequences(1, kind="x")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="outside bounds"):
        EmpiricalBernsteinSequences(1).update([0], [2.0])
    with pytest.raises(InvalidInputError, match="one size per sequence"):
        EmpiricalBernsteinSequences(1, pool_sizes=[3, 4])
