"""All models of a race at once: means that hold together, and ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.estimate import Estimate, check_level
from evalbudget.missing import Missing, as_missing
from evalbudget.races._draws import ModelDraws
from evalbudget.races.estimates._means import benchmark_mean, paired_difference
from evalbudget.statistics._bounds import FloatArray, IntArray


@dataclass(frozen=True)
class ModelRanks:
    """Where each model may stand.

    Attributes:
        low: simultaneous lower ends, shape (n_models,).
        high: simultaneous upper ends, same shape.
        best: smallest rank each model may have, 1 being the best, shape (n_models,).
        worst: largest rank, same shape.
    """

    low: FloatArray
    high: FloatArray
    best: IntArray
    worst: IntArray


def model_means(
    draws: Sequence[ModelDraws], *, bounds: tuple[float, float] = (0.0, 1.0)
) -> tuple[Estimate, ...]:
    """Benchmark means of all models, with intervals that hold together.

    Each interval spends (1 - level) / n_models (Bonferroni): models may share the order of items, which makes
    them dependent, and a union bound does not mind. Holding for all, they hold for whichever model is picked
    because of the scores: the winner's interval needs no further correction.

    Args:
        draws: of every model in the race, dropped ones included.
        bounds: the declared range of the scores.

    Raises:
        InvalidInputError: no models, or the bounds are not a range.
    """
    if not draws:
        raise InvalidInputError("no models; give the draws of at least one")
    return tuple(benchmark_mean(d, bounds=bounds, simultaneous=len(draws)) for d in draws)


def means_at_worst(
    draws: Sequence[ModelDraws],
    *,
    n_items: int,
    missing: str = Missing.WORST,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> tuple[tuple[Estimate, ...], tuple[Estimate, ...]]:
    """As :func:`model_means`, with missing scores as low, and as high, as they may count.

    The lower ends of the first and the upper ends of the second hold together at their level.

    Args:
        draws: of every model in the race, dropped ones included.
        n_items: of the benchmark.
        missing: what a missing score counts as.
        bounds: the declared range of the scores.

    Raises:
        InvalidInputError: no models, or the bounds are not a range.
        UnknownNameError: no such value of ``missing``.
    """
    counted = as_missing(missing)
    if counted is Missing.DROP or not any(d.n_missing(n_items) for d in draws):
        means = model_means(draws, bounds=bounds)
        return means, means
    lowest = model_means([d.counting_missing(0.0, n_items) for d in draws], bounds=bounds)
    if counted is Missing.ZERO:
        return lowest, lowest
    return lowest, model_means([d.counting_missing(1.0, n_items) for d in draws], bounds=bounds)


def differences_from(
    draws: Sequence[ModelDraws], reference: int, *, bounds: tuple[float, float] = (0.0, 1.0)
) -> tuple[Estimate, ...]:
    """Paired differences, reference less each model, that hold together whichever model is the reference.

    Each spends (1 - level) / (n_models (n_models - 1) / 2), as all pairs would: the reference may be the
    leader of the moment. Models that share the order of items and answer them alike are told apart sooner
    than by their own intervals. The reference's difference from itself says nothing.

    Args:
        draws: of every model in the race, from the same pool in the same order.
        reference: index of the model to compare with.
        bounds: the declared range of the scores.

    Raises:
        InvalidInferenceError: a model does not share the reference's pool and order.
        InvalidInputError: there is no such reference, or the bounds are not a range.
    """
    m = len(draws)
    if not 0 <= reference < m:
        raise InvalidInputError(f"reference {reference} is not one of {m} models; give an index from 0")
    pairs = max(1, m * (m - 1) // 2)
    return tuple(paired_difference(draws[reference], d, bounds=bounds, simultaneous=pairs) for d in draws)


def model_ranks(
    estimates: Sequence[Estimate], level: float = 0.95, *, highest: Sequence[Estimate] | None = None
) -> ModelRanks:
    """Ranks from simultaneous intervals: a model stands behind another only if their intervals are apart.

    All ranks, and the winner's interval, hold together with probability ``level``, at every moment.

    Args:
        estimates: of :func:`model_means`.
        level: of all together.
        highest: with the first ones of :func:`means_at_worst`, the second ones, whose upper ends count.

    Raises:
        InvalidInputError: the level is not in (0, 1).
    """
    check_level(level)
    low = np.array([estimate.confidence_interval(level).low for estimate in estimates])
    high = np.array([estimate.confidence_interval(level).high for estimate in highest or estimates])
    # below all of my interval, or above all of it
    best = 1 + (low[None, :] > high[:, None]).sum(axis=1)
    worst = low.size - (high[None, :] < low[:, None]).sum(axis=1)
    return ModelRanks(low, high, best.astype(np.int64), worst.astype(np.int64))
