"""Our rows among the host's metrics: what the bought scores prove about the benchmark mean."""

from __future__ import annotations

from collections.abc import Sequence

from inspect_ai.scorer import Metric, SampleScore, Value, metric

from evalbudget import Allocation
from evalbudget.errors import InvalidInputError
from evalbudget.estimators import ItemReadings
from evalbudget.repeats import mean_estimates
from evalbudget_inspect.scoring import METADATA
from evalbudget_inspect.values import in_range, score_to_float


@metric(name="evalbudget", scores="unreduced")
def budget_estimates(
    allocation: str = "fixed",
    fixed_repeats: int = 1,
    low: float | None = None,
    high: float | None = None,
    level: float = 0.95,
) -> Metric:
    """The benchmark mean, and how sure it is.

    ``estimate``, ``stderr``, ``lower`` and ``upper`` take the items as given: only the repeats are random.
    ``sampled_items_stderr``, ``sampled_items_lower`` and ``sampled_items_upper`` take the items for a sample
    of all that could have been asked. ``items`` and ``readings`` count what was scored. The intervals are for
    a fixed number of readings and asymptotic.

    Args:
        allocation: how the sampler's counts depend on scores; see ``evalbudget.Allocation``.
        fixed_repeats: readings every item got whatever its scores were.
        low: the smallest possible score, if declared.
        high: the largest possible score, if declared.
        level: of the intervals.
    """
    bounds = (low, high) if low is not None and high is not None else None

    def compute(scores: list[SampleScore]) -> Value:
        return dict(estimates_of(scores, Allocation(allocation), fixed_repeats, bounds, level))

    return compute


def estimates_of(
    scores: Sequence[SampleScore],
    allocation: Allocation,
    fixed_repeats: int,
    bounds: tuple[float, float] | None,
    level: float,
) -> dict[str, float]:
    """The rows of :func:`budget_estimates`."""
    return mean_estimates(
        item_readings(scores, bounds),
        allocation=allocation,
        fixed_repeats=fixed_repeats,
        bounds=bounds,
        level=level,
    )


def item_readings(scores: Sequence[SampleScore], bounds: tuple[float, float] | None) -> ItemReadings | None:
    """The scores as readings; None if there are none.

    Left out: unscored ones, those outside the bounds, and values that are not numbers.
    """
    items: dict[str, int] = {}
    epochs: dict[str, int] = {}
    columns: tuple[list[int], list[int], list[float]] = ([], [], [])
    for sample in scores:
        try:
            value = score_to_float(sample.score, sample.scorer or "scorer")
        except InvalidInputError:
            return None  # a scorer whose values are no numbers has no mean
        name = str(sample.sample_id)
        epochs[name] = epochs.get(name, 0) + 1
        if not in_range(value, bounds):
            continue
        ours = (sample.score.metadata or {}).get(METADATA) or {}
        columns[0].append(items.setdefault(name, len(items)))
        columns[1].append(int(ours.get("epoch", epochs[name])) - 1)
        columns[2].append(value)
    if not items:
        return None
    return ItemReadings.of(*columns, n_items=len(items))
