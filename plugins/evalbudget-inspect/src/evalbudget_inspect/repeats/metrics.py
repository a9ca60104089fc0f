"""Our rows among the host's metrics: what the bought scores prove about the benchmark mean."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from inspect_ai.scorer import Metric, SampleScore, Value, metric

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.repeats.rows import COUNTS, mean_estimates
from evalbudget_inspect.host.scoring import METADATA
from evalbudget_inspect.host.values import in_range, known_range, score_to_float
from evalbudget_inspect.repeats.allocation import WEIGHT


@metric(name="evalbudget", scores="unreduced")
def budget_estimates(
    allocation: str = "fixed",
    fixed_repeats: int = 1,
    low: float | None = None,
    high: float | None = None,
    level: float = 0.95,
    accuracy: bool = False,
) -> Metric:
    """The benchmark mean, and how sure it is.

    ``estimate``, ``stderr``, ``lower`` and ``upper``: items and repeats are random. ``repeats_stderr``,
    ``repeats_lower`` and ``repeats_upper``: these items asked again, only the repeats are random. The
    intervals are for a fixed number of readings and asymptotic; the rules are those of
    :func:`~evalbudget.repeats.rows.mean_rows`.

    Args:
        allocation: how the sampler's counts depend on scores; see ``evalbudget.Allocation``.
        fixed_repeats: readings every item got whatever its scores were.
        low: the smallest possible score, if declared.
        high: the largest possible score, if declared.
        level: of the intervals.
        accuracy: the scorer's own metrics include the host's ``accuracy``.
    """
    bounds = (low, high) if low is not None and high is not None else None

    def compute(scores: list[SampleScore]) -> Value:
        known = bounds or known_range([s.score.value for s in scores], accuracy=accuracy)
        return dict(estimates_of(scores, Allocation(allocation), fixed_repeats, known, level))

    return compute


def estimates_of(
    scores: Sequence[SampleScore],
    allocation: Allocation,
    fixed_repeats: int,
    bounds: tuple[float, float] | None,
    level: float,
) -> dict[str, float]:
    """The rows of :func:`budget_estimates`; none for a scorer whose values are no numbers."""
    try:
        readings = item_readings(scores, bounds)
    except InvalidInputError:
        return {}
    rows = mean_estimates(
        readings, allocation=allocation, fixed_repeats=fixed_repeats, bounds=bounds, level=level
    )
    return without_counts(rows)


def without_counts(rows: Mapping[str, float]) -> dict[str, float]:
    """Rows for the host's table, which prints every number with decimals: counts stand in the metadata.

    Where nothing was scored, ``estimate`` is nan, or the host would lead with another metric.
    """
    return {"estimate": math.nan} | {name: value for name, value in rows.items() if name not in COUNTS}


def item_readings(scores: Sequence[SampleScore], bounds: tuple[float, float] | None) -> ItemReadings | None:
    """The scores as readings; None if there are none.

    Left out: unscored ones and those outside the bounds.

    Raises:
        InvalidInputError: a value that is no number.
    """
    items: dict[str, int] = {}
    epochs: dict[str, int] = {}
    columns: tuple[list[int], list[int], list[float]] = ([], [], [])
    weights: list[float] = []
    for sample in scores:
        value = score_to_float(sample.score, sample.scorer or "scorer")
        name = str(sample.sample_id)
        epochs[name] = epochs.get(name, 0) + 1
        if not in_range(value, bounds):
            continue
        ours = (sample.score.metadata or {}).get(METADATA) or {}
        columns[0].append(items.setdefault(name, len(items)))
        columns[1].append(int(ours.get("epoch", epochs[name])) - 1)
        columns[2].append(value)
        weights.append(weight_of(ours))
    if not items:
        return None
    return ItemReadings.of(*columns, n_items=len(items), weight=weights)


def weight_of(entry: Mapping[str, Any]) -> float:
    """Weight of a reading by our entry in its score's metadata; nan if it was held out or has none."""
    weight = entry.get(WEIGHT)
    return math.nan if weight is None else float(weight)
