from __future__ import annotations

import math

import numpy as np
import pytest

from evalbudget.statistics._agreement import agreement


def test_krippendorffs_published_example() -> None:
    """Interval data of four observers on twelve units; alpha = .849 (Krippendorff 2011, section C)."""
    nan = float("nan")
    table = np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
            [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan],
        ]
    )
    _, unit = np.nonzero(~np.isnan(table))
    found = agreement(unit, table[~np.isnan(table)])
    assert found is not None
    assert found.alpha == pytest.approx(0.849, abs=5e-4)
    assert found.things == 11


def test_by_hand() -> None:
    found = agreement([0, 0, 1, 1, 2], [1.0, 1.0, 2.0, 4.0, 9.0])
    assert found is not None
    # observed: (0 + 2 * 4) / 4 = 2; expected: 2 * 6 / 3 = 4
    assert (found.things, found.equal, found.difference, found.alpha) == (2, 0.5, 1.0, 0.5)


def test_three_people_count_in_pairs() -> None:
    found = agreement([0, 0, 0], [1.0, 1.0, 4.0])
    assert found is not None
    assert (found.equal, found.difference) == (pytest.approx(1 / 3), 2.0)
    assert found.alpha == pytest.approx(0.0)  # one thing: they differ as strangers would


def test_nothing_to_compare() -> None:
    assert agreement([], []) is None
    assert agreement([0, 1], [1.0, 2.0]) is None
    same = agreement([0, 0, 1, 1], [3.0] * 4)
    assert same is not None
    assert same.equal == 1.0
    assert math.isnan(same.alpha)
