"""Raters on different scales are put on one, over all that each of them said."""

from __future__ import annotations

import numpy as np
import pytest

from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError
from evalbudget.recorded._rescale import rescale_raters


def recorded(*raters: np.ndarray) -> RecordedScores:
    """One model's scores by each rater, one per item."""
    names = tuple("abc"[: len(raters)])
    items = tuple(map(str, range(raters[0].size)))
    return RecordedScores(np.stack(raters, axis=1)[None, :, :, None], ("m",), items, names)


def test_the_range_that_each_rater_used_becomes_0_to_1() -> None:
    rng = np.random.default_rng(15)
    five, ten = rng.integers(1, 6, 50).astype(float), rng.integers(1, 11, 50).astype(float)
    silent = np.full(50, np.nan)
    mapped = rescale_raters(recorded(five, ten, silent)).scores[0, :, :, 0]
    np.testing.assert_allclose(mapped.T, [(five - 1) / 4, (ten - 1) / 9, silent])


def test_a_rater_that_always_says_the_same_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'b' gave 4 everywhere"):
        rescale_raters(recorded(np.arange(5.0), np.full(5, 4.0)))
