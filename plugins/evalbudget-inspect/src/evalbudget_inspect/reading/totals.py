"""Whether a log's results are the means of its samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from inspect_ai.log import EvalScore

from evalbudget_inspect.host.dict_scores import PREFIX
from evalbudget_inspect.host.how_bought import BUDGET, is_race, step_of, stops_early
from evalbudget_inspect.host.reducers import MEANS, of_the_task
from evalbudget_inspect.reading.parts import Part
from evalbudget_inspect.reading.scores import as_number, said_by

_NAMED = 3
_OURS = {"estimate", f"{PREFIX}estimate"}


def contradicted(parts: Sequence[Part]) -> Iterator[str]:
    """Notes on results with another mean than the samples, which count.

    Only where both are of the same answers for certain: all epochs of all items have a score.
    """
    for part in parts:
        header = part.log.header
        chosen = step_of(header, BUDGET) is not None or is_race(header) or stops_early(header)
        if header.results is None or chosen or not _is_whole(part):
            continue
        for series, mean, score in _with_means(part, header.results.scores):
            for name, total in _totals(score):
                if not _is(total, mean):
                    yield (
                        f"The results of {part.log.name} say {name} {total:.6g} by {series}, and its samples "
                        f"average {mean:.6g}: the samples count."
                    )


def metrics_of_the_task(parts: Sequence[Part]) -> Iterator[str]:
    """Notes on series of which no result is the mean of the samples, as all that is said here is."""
    for part in parts:
        results = part.log.header.results
        for series, mean, score in _with_means(part, results.scores) if results and _is_whole(part) else ():
            said = {key: float(metric.value) for key, metric in score.metrics.items()}
            own = [] if _OURS & said.keys() else of_the_task(said)
            if not own or any(_is(said[key], mean) for key in own):
                continue
            named = ", ".join(f"{key} {said[key]:.6g}" for key in (["all"] if "all" in own else own[:_NAMED]))
            yield (
                f"The results of {part.log.name} say {named} by {series}: another quantity than the mean of "
                f"its samples, {mean:.6g}, which is what is said here."
            )


def _is_whole(part: Part) -> bool:
    log = part.log
    return part.plan.whole and not part.plan.lacking and len(log.samples) == len(log.all)


def _with_means(part: Part, scores: Sequence[EvalScore]) -> Iterator[tuple[str, float, EvalScore]]:
    """Of results by the mean of an item's epochs: the series, its mean over the samples, the result."""
    means: Mapping[str, float] = _means(part)
    for score in scores:
        series = score.scorer if score.scorer in means else f"{score.scorer}.{score.name}"
        if score.reducer in (None, "mean"):
            yield series, means.get(series, math.nan), score


def _is(total: float, mean: float) -> bool:
    """Also where the mean is unknown."""
    return not abs(total - mean) > 1e-9 * max(1.0, abs(total))


def _totals(score: EvalScore) -> Iterator[tuple[str, float]]:
    for metric in score.metrics.values():
        name = metric.name.rpartition("/")[2]
        if name in MEANS and not metric.params:
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
