"""From recorded draws, of one model or of two, to what the confidence kernels take."""

from __future__ import annotations

import numpy as np

from evalbudget.errors import InvalidInferenceError
from evalbudget.races._draws import Chances, ModelDraws
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._pool_mean_sequence import ControlledDraws
from evalbudget.statistics._uneven_draws import UnevenDraws


def of_model(draws: ModelDraws) -> ControlledDraws:
    """One model's draws, one by one."""
    low, high = _range(draws)
    return ControlledDraws(
        known_count=draws.known.size,
        known_sum=float(draws.known.sum()),
        pool=draws.pool,
        value=draws.value,
        prediction=draws.prediction,
        unseen_mean=np.clip(_unseen_sum(draws) / (draws.pool - np.arange(draws.value.size)), low, high),
        low=low,
        high=high,
    )


def of_uneven(draws: ModelDraws, chances: Chances) -> UnevenDraws:
    """One model's draws with probabilities of their own."""
    return UnevenDraws(
        pool=draws.pool,
        value=draws.value,
        prediction=chances.prediction,
        unread_sum=chances.unread_sum,
        propensity=chances.propensity,
        variance=chances.variance,
        skewness=chances.skewness,
        least=chances.least,
        most=chances.most,
    )


def of_pair(a: ModelDraws, b: ModelDraws) -> ControlledDraws:
    r"""The difference of two models on the items both drew, on the unit scale (S_a - S_b + 1) / 2.

    Uses the longest common beginning of both orders. An item that failed for either has no difference; an
    anchor only one of them answered likewise.

    Raises:
        InvalidInferenceError: the two do not draw from the same pool in the same order.
    """
    if a.chances is not None or b.chances is not None:
        raise InvalidInferenceError(
            "models draw items by predictions of their own, so that they cannot be paired"
        )
    t = min(a.value.size, b.value.size)
    known, of_a, of_b = np.intersect1d(a.known_item, b.known_item, assume_unique=True, return_indices=True)
    if a.pool != b.pool or a.known_item.size != a.known.size or b.known_item.size != b.known.size:
        raise InvalidInferenceError(
            f"one model draws from {a.pool} items, the other from {b.pool}, or their anchors are not named; "
            "a paired difference needs the same pool of items in the same order"
        )
    if (a.item[:t] != b.item[:t]).any():
        place = int((a.item[:t] != b.item[:t]).argmax())
        raise InvalidInferenceError(
            f"draw {place} is item {a.item[place]} for one model and {b.item[place]} for the other; "
            "a paired difference needs models that share one order"
        )
    left = a.pool - np.arange(t)
    (low_a, high_a), (low_b, high_b) = _range(a), _range(b)
    low, high = (low_a[:t] - high_b[:t] + 1) / 2, (high_a[:t] - low_b[:t] + 1) / 2
    mean = ((_unseen_sum(a)[:t] - _unseen_sum(b)[:t]) / left + 1) / 2
    return ControlledDraws(
        known_count=known.size,
        known_sum=float(((a.known[of_a] - b.known[of_b] + 1) / 2).sum()),
        pool=a.pool,
        value=(a.value[:t] - b.value[:t] + 1) / 2,
        prediction=(a.prediction[:t] - b.prediction[:t] + 1) / 2,
        unseen_mean=np.clip(mean, low, high),
        low=low,
        high=high,
    )


def _unseen_sum(draws: ModelDraws) -> FloatArray:
    """Sum of f over what is left just before each draw, shape (t,)."""
    before = np.cumsum(draws.prediction) - draws.prediction
    first = np.flatnonzero(np.diff(draws.batch, prepend=-1))
    in_batch = before - before[first][draws.batch]
    return np.asarray(draws.unseen_prediction_sum[draws.batch] - in_batch, dtype=np.float64)


def _range(draws: ModelDraws) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest f over what is left before each draw, each of shape (t,)."""
    start = np.flatnonzero(np.diff(draws.batch, prepend=-1))
    left = draws.pool - start
    mean = draws.unseen_prediction_sum / left
    # no single item is farther from the mean than all of them together: nothing for constant predictions
    squares = np.maximum(draws.unseen_prediction_sum_sq - mean * draws.unseen_prediction_sum, 0.0)
    reach = np.sqrt(squares) + 1e-6
    return np.maximum(0.0, mean - reach)[draws.batch], np.minimum(1.0, mean + reach)[draws.batch]
