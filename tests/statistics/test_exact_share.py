"""Clopper and Pearson's interval against its definition, published values and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalbudget.errors import InvalidInputError
from evalbudget.statistics._exact_share import exact_share


def test_nothing_of_25_leaves_room_up_to_an_eighth():
    low, high = exact_share(0, 25, 0.95)
    assert low == 0.0
    assert high == pytest.approx(1 - 0.025 ** (1 / 25), abs=1e-12)
    assert round(high, 3) == 0.137


def test_all_of_25_is_the_mirror_image():
    low, high = exact_share(25, 25, 0.95)
    assert (low, high) == (pytest.approx(0.025 ** (1 / 25), abs=1e-12), 1.0)


def test_an_interval_against_published_values():
    # Agresti & Coull (1998): 5 of 10 at 95%
    assert exact_share(5, 10, 0.95) == pytest.approx((0.1871, 0.8129), abs=5e-5)


@pytest.mark.parametrize("k", range(1, 9))
def test_each_end_leaves_half_of_the_error_in_its_tail(k):
    n, level = 9, 0.9
    low, high = exact_share(k, n, level)

    def chance(p, counts):
        return sum(math.comb(n, j) * p**j * (1 - p) ** (n - j) for j in counts)

    assert chance(low, range(k, n + 1)) == pytest.approx(0.05, abs=1e-9)
    assert chance(high, range(k + 1)) == pytest.approx(0.05, abs=1e-9)


@pytest.mark.parametrize("n", [1, 5, 40])
def test_it_covers_every_share_at_its_level(n):
    ends = np.array([exact_share(k, n, 0.95) for k in range(n + 1)])
    for p in np.linspace(0.001, 0.999, 97):
        chance = np.array([math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)])
        assert chance[(ends[:, 0] <= p) & (p <= ends[:, 1])].sum() >= 0.95


def test_counts_need_not_be_whole_and_ends_move_with_them():
    whole, half, more = (exact_share(k, 20, 0.95) for k in (3, 3.5, 4))
    assert whole[0] < half[0] < more[0]
    assert whole[1] < half[1] < more[1]


@pytest.mark.parametrize(("k", "n"), [(1, 0), (-1, 5), (6, 5), (math.nan, 5)])
def test_what_is_no_share_is_refused(k, n):
    with pytest.raises(InvalidInputError, match="is no share; give at least one case"):
        exact_share(k, n, 0.95)
