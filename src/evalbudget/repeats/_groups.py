"""Several tasks as one benchmark: the weighted mean of their estimates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from evalbudget._fields import names
from evalbudget.estimate import Estimate
from evalbudget.repeats._mean_rows import LEVEL, NOTHING_SCORED, BenchmarkMean, mean_rows, with_ends
from evalbudget.repeats.estimates._combined import weighted_mean

_SHOWN = 3


def describe_group(
    means: Mapping[str, BenchmarkMean],
    weights: Mapping[str, float],
    *,
    whole: Mapping[str, float] | None = None,
    lost: Mapping[str, Sequence[Estimate]] | None = None,
    level: float = LEVEL,
) -> BenchmarkMean:
    """The weighted mean of tasks and how sure it is, in the rows of one task; only what is defined.

    Random are each task's items and repeats, independently of each other; the tasks and their weights are
    given. Intervals are those of :func:`~evalbudget.repeats.estimates._combined.weighted_mean` under the
    rules of
    :func:`~evalbudget.repeats._mean_rows.mean_rows`. The range of the mean is the weighted mean of the tasks'
    ranges, if all of them are known.

    Args:
        means: by task.
        weights: of the same tasks.
        whole: the same with the items that have no score; None where they weigh nothing, or all have one.
        lost: of further tasks, none of whose items has a score, what they would be with the lowest scores and
            with the highest; ``whole`` has them too.
        level: of the intervals.
    """
    scored = {task: mean for task, mean in means.items() if mean.total is not None}
    if not scored or len(scored) < len(means):
        missing = [task for task in means if task not in scored]
        return BenchmarkMean(NOTHING_SCORED.rows, f"nothing was scored in {names(missing, _SHOWN)}")
    own = [weights[task] for task in scored]
    totals = [mean.total for mean in scored.values() if mean.total is not None]
    repeats = [mean.repeats for mean in scored.values() if mean.repeats is not None]
    fulls = [mean.full for mean in scored.values() if mean.full is not None]
    total = weighted_mean(totals, own)
    found = mean_rows(
        total,
        weighted_mean(repeats, own),
        _full_run(fulls, own) if len(fulls) == len(own) else None,
        items=int(sum(mean.rows["items"] for mean in scored.values())),
        readings=int(sum(mean.rows["readings"] for mean in scored.values())),
        bounds=_bounds(list(scored.values()), own),
        level=level,
    )
    ends = [
        *(mean.ends or (total, total) for mean, total in zip(scored.values(), totals, strict=True)),
        *(lost or {}).values(),
    ]
    if lost or any(mean.ends for mean in scored.values()):
        of_all = own if whole is None else [whole[task] for task in (*scored, *(lost or {}))]
        found = with_ends(found, [weighted_mean(end, of_all) for end in zip(*ends, strict=True)], level)
    if "lower" in found.rows:
        return found
    if math.isfinite(total.standard_error):
        same = _without_range(scored)
        if not same:
            return found
        cases = "items" if all(scored[task].clusters is None for task in same) else "clusters"
        alike = f"all {cases} of {names(same, _SHOWN)} have the same score"
        return replace(found, no_interval=f"{alike}, and the range of the scores is not declared")
    unknown = [task for task, mean in scored.items() if not math.isfinite(mean.total.standard_error)]  # type: ignore[union-attr]
    why = f"too few items were scored in {names(unknown, _SHOWN)} to know an error"
    return replace(found, no_interval=why)


def _without_range(scored: Mapping[str, BenchmarkMean]) -> list[str]:
    """Tasks whose scores never differed, and of which nobody knows what else could have come."""
    return [
        task
        for task, mean in scored.items()
        if mean.bounds is None and mean.total is not None and mean.total.standard_error == 0.0
    ]


def _full_run(fulls: list[Estimate], weights: list[float]) -> Estimate:
    """Of the group: cut off where what was read leaves it no room."""
    found = weighted_mean(fulls, weights)
    if not all("least" in full.details for full in fulls):
        return found
    whole = math.fsum(weights)
    room = {
        end: math.fsum(w * full.details[end] for w, full in zip(weights, fulls, strict=True)) / whole
        for end in ("least", "most")
    }
    return replace(found.within(*room.values()), details={**found.details, **room})


def _bounds(means: list[BenchmarkMean], weights: list[float]) -> tuple[float, float] | None:
    ranges = [mean.bounds for mean in means]
    known = [bounds for bounds in ranges if bounds is not None]
    if len(known) < len(ranges):
        return None
    whole = math.fsum(weights)
    low, high = (
        math.fsum(w * bounds[end] for w, bounds in zip(weights, known, strict=True)) / whole for end in (0, 1)
    )
    return low, high
