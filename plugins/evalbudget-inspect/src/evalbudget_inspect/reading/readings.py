"""The readings of logs in columns: every score, and nan for every one that should be there and is not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from inspect_ai.log import EvalSampleSummary

from evalbudget.backtest import AtWorst, Bought, LogColumns, as_written_by, asked_again
from evalbudget_inspect.host.costs_in_logs import PaidSamples
from evalbudget_inspect.host.how_bought import BUDGET, bought, paid_in_all, step_of
from evalbudget_inspect.host.readings import phase_of
from evalbudget_inspect.host.score_values import in_range
from evalbudget_inspect.reading.declared import Range, limits_of, ranges_of
from evalbudget_inspect.reading.logs import several
from evalbudget_inspect.reading.parts import Part
from evalbudget_inspect.reading.planned import Cell
from evalbudget_inspect.reading.scores import Reading, Series, readings_in
from evalbudget_inspect.reading.shared_runs import SharedRuns

Purchases = dict[str, dict[str, Bought]]
"""By model and log."""
MadeGood = Counter[tuple[str, str, str]]
"""Failures that were asked again, by model, rater and item."""

_NAMED = 3

Limits = Counter[tuple[str, str]]
"""Answers that ended at a limit, by model and kind of limit."""


def read_readings(
    parts: Sequence[Part], series: Series, shared: SharedRuns
) -> tuple[LogColumns, Purchases, list[str]]:
    """All readings, how they were bought, and notes on the answers that have no score.

    Args:
        parts: the logs.
        series: of all of them.
        shared: which logs belong to one run.
    """
    columns, paid, purchases = LogColumns(), PaidSamples(), Purchases()
    asked, errors, unscored, again = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
    made_good = MadeGood()
    limits = Limits()
    by: dict[str, dict[str, None]] = {}
    last = {part.log.header.eval.task_id: part.log for part in parts}  # of a task's attempts
    in_all = {task: paid_in_all(log.header) for task, log in last.items()}
    for part in parts:
        log = part.log
        task = log.header.eval.task_id
        cost = 0.0 if in_all[task] is not None and log is not last[task] else in_all[task]
        name, expected = shared.log(log.header, log.file), series.of_log(log)
        logs = purchases.setdefault(part.model, {})
        with as_written_by("inspect", log.file):
            logs[name] = shared.together(log.header, logs.get(name), bought(log.header, log.paid, cost))
            # where epochs score one answer, its judges' second scores come after their first, and then what
            # failed, of which nothing tells the judge
            samples = log.samples if part.turns is None else sorted(log.samples, key=_by_turn)
            ranges_told = limits_of(log.header)
            all_found = [
                (
                    sample,
                    [_within(ranges_told, part, each) for each in readings_in(sample, part.turns, expected)],
                )
                for sample in samples
            ]
            scored = _asked_again(part, all_found)
            for sample, every in all_found:
                found = [reading for reading in every if not _made_good(part, sample, reading, scored)]
                for reading in every if len(found) < len(every) and part.turns is None else ():
                    if _made_good(part, sample, reading, scored):
                        made_good[part.model, reading.rater, part.item(sample.id)] += 1
                for reading in found:
                    _add(columns, part, name, (str(sample.id), sample.epoch), reading)
                columns.costs += [paid.cost(sample, log.file)] * len(found)
                asked[part.model] += 1
                if sample.limit is not None:
                    limits[part.model, str(sample.limit)] += 1
                if not every or any(math.isnan(reading.value) for reading in found):
                    (unscored if sample.error is None else errors)[part.model] += 1
                    if sample.error is None and part.turns is None:
                        lacking = (each.rater for each in found if math.isnan(each.value))
                        by.setdefault(part.model, {}).update(dict.fromkeys(lacking))
                elif len(found) < len(every):
                    again[part.model] += 1
            for reading, cell in _lacking(part, expected):
                _add(columns, part, name, cell, reading)
                columns.costs.append(math.nan)
    scored_at_all = {part.model for part in parts if _is_scored(part)}
    bare = [model for model in unscored if model not in scored_at_all]
    notes = [*_notes(asked, errors, unscored, bare, _by(by, len(series.numbers))), *_limited(asked, limits)]
    ranges = ranges_of(parts, series.numbers) if again else {}
    for model, n in again.items():
        worst = _at_worst(columns, model, made_good, ranges)
        notes.append(asked_again(n, asked[model], model, worst))
    return columns, purchases, notes


def _at_worst(
    columns: LogColumns,
    model: str,
    made_good: Mapping[tuple[str, str, str], int],
    ranges: Mapping[str, Range],
) -> dict[str, AtWorst]:
    """What each score of a model would be with the lowest one in place of every failure made good."""
    scores: dict[str, dict[str, list[float]]] = {}
    for whose, rater, item, score in zip(
        columns.models, columns.raters, columns.items, columns.scores, strict=True
    ):
        if whose == model and not math.isnan(score):
            scores.setdefault(rater, {}).setdefault(item, []).append(score)
    found = {}
    for rater in dict.fromkeys(rater for whose, rater, _ in made_good if whose == model):
        own = scores[rater]
        low = ranges[rater][0] if rater in ranges else min(map(min, own.values()))
        failed = {item: made_good[model, rater, item] for item in own}
        found[rater] = AtWorst.of(own, failed, low)
    return found


def _by_turn(sample: EvalSampleSummary) -> tuple[bool, int]:
    return not sample.scores, sample.epoch


def _within(limits: Mapping[str, Range], part: Part, reading: Reading) -> Reading:
    """What a run of ours refused is no score: it was outside of the range that was declared."""
    bounds = limits.get(reading.rater if part.turns is None else part.turns.series)
    return reading if in_range(reading.value, bounds) else replace(reading, value=math.nan)


def _asked_again(
    part: Part, found: Sequence[tuple[EvalSampleSummary, Sequence[Reading]]]
) -> set[tuple[str, str]]:
    """Items, and who scored them, whose failures a run of ours made good by asking again.

    Where judges take turns, any of them: what one failed on another scored.
    """
    if step_of(part.log.header, BUDGET) is None:
        return set()
    return {
        _key(part, sample, reading)
        for sample, readings in found
        for reading in readings
        if not math.isnan(reading.value)
    }


def _made_good(part: Part, sample: EvalSampleSummary, reading: Reading, scored: set[tuple[str, str]]) -> bool:
    return math.isnan(reading.value) and _key(part, sample, reading) in scored


def _key(part: Part, sample: EvalSampleSummary, reading: Reading) -> tuple[str, str]:
    return str(sample.id), reading.rater if part.turns is None else ""


def _lacking(part: Part, expected: Sequence[str]) -> Iterator[tuple[Reading, Cell]]:
    raters = expected if part.turns is None else part.turns.judges[:1]
    for cell in part.plan.lacking:
        for rater in raters:
            yield Reading(rater, math.nan, {}), cell


def _add(columns: LogColumns, part: Part, log: str, cell: Cell, reading: Reading) -> None:
    item, epoch = part.item(cell[0]), cell[1]
    generation: object = (log, epoch)
    if part.turns is not None and part.turns.kept:  # a judge's second score of it counts as one of another
        again = columns.again.get((log, item, reading.rater), 0)
        columns.again[log, item, reading.rater] = again + 1
        generation = (log, again)
    columns.generations.append(generation)
    columns.items.append(item)
    columns.scores.append(reading.value)
    columns.models.append(part.model)
    columns.raters.append(reading.rater)
    columns.repeats.append((log, epoch))
    columns.logs.append(log)
    columns.epochs.append(epoch)
    columns.phases.append(phase_of(reading.entry))


def _is_scored(part: Part) -> bool:
    return any(sample.scores or sample.error is not None for sample in part.log.samples)


def _by(lacking: Mapping[str, Mapping[str, None]], n_series: int) -> dict[str, str]:
    """Of models whose answers lack some scores and have others: which."""
    found = {}
    for model, series in lacking.items():
        if 0 < len(series) < n_series:
            more = f" and {len(series) - _NAMED:,} more" if len(series) > _NAMED else ""
            found[model] = f" by {', '.join(list(series)[:_NAMED])}{more}"
    return found


def _notes(
    asked: Counter[str],
    errors: Counter[str],
    unscored: Counter[str],
    bare: Sequence[str],
    by: Mapping[str, str],
) -> Iterator[str]:
    for model in bare:
        yield f"{model} has no score since its log is not scored; score it: inspect score LOG."
    told: tuple[tuple[Counter[str], str, Mapping[str, str]], ...] = (
        (errors, "ended in an error", {}),
        (unscored, "came back without a score", by),
    )
    for counts, what, whose in told:
        for model, n in counts.items():
            of = f"{n:,} of {several(asked[model], 'answer')} of {model}"
            yield f"{of} {what}{whose.get(model, '')}: missing."


def _limited(asked: Counter[str], limits: Limits) -> Iterator[str]:
    """On answers that the host cut off, which are scored as they then were."""
    for model in dict.fromkeys(model for model, _ in limits):
        kinds = {kind: n for (whose, kind), n in limits.items() if whose == model}
        verb = "counts as it was" if sum(kinds.values()) == 1 else "count as they were"
        yield (
            f"{sum(kinds.values()):,} of {several(asked[model], 'answer')} of {model} ended at a limit "
            f"({', '.join(kinds)}) and {verb} scored there."
        )
