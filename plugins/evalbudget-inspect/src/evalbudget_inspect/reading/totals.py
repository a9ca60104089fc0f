"""Whether a log's results are the means of its samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from inspect_ai.log import EvalScore

from evalbudget_inspect.host.how_bought import BUDGET, is_race, step_of, stops_early
from evalbudget_inspect.reading.parts import Part
from evalbudget_inspect.reading.scores import as_number, said_by

_MEANS = ("accuracy", "mean")


def contradicted(parts: Sequence[Part]) -> Iterator[str]:
    """Notes on results with another mean than the samples, which count.

    Only where both are of the same answers for certain: all epochs of all items have a score.
    """
    for part in parts:
        log, header = part.log, part.log.header
        chosen = step_of(header, BUDGET) is not None or is_race(header) or stops_early(header)
        whole = part.plan.whole and not part.plan.lacking and len(log.samples) == len(log.all)
        if header.results is None or chosen or not whole:
            continue
        means = _means(part)
        for score in header.results.scores:
            series = score.scorer if score.scorer in means else f"{score.scorer}.{score.name}"
            for name, total in _totals(score):
                mean = means.get(series, math.nan)
                if abs(total - mean) > 1e-9 * max(1.0, abs(total)):
                    yield (
                        f"The results of {log.name} say {name} {total:.6g} by {series}, and its samples "
                        f"average {mean:.6g}: the samples count."
                    )


def _totals(score: EvalScore) -> Iterator[tuple[str, float]]:
    if score.reducer in (None, "mean"):
        for metric in score.metrics.values():
            name = metric.name.rpartition("/")[2]
            if name in _MEANS and not metric.params:
                yield name, float(metric.value)


def _means(part: Part) -> dict[str, float]:
    """Of every series that is a number in every sample."""
    items: dict[str, dict[str, list[float]]] = {}
    for sample in part.log.samples:
        for series, value in said_by(sample) if sample.error is None else ():
            items.setdefault(series, {}).setdefault(str(sample.id), []).append(as_number(series, value))
    n = len(part.log.samples)
    return {
        series: math.fsum(math.fsum(own) / len(own) for own in by_item.values()) / len(by_item)
        for series, by_item in items.items()
        if sum(map(len, by_item.values())) == n
    }
