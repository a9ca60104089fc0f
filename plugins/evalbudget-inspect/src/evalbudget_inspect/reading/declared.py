"""What logs declare beside scores: ranges, reducers, clusters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from inspect_ai.log import EvalLog

from evalbudget.errors import InvalidInputError
from evalbudget.repeats.estimates import Strata
from evalbudget_inspect.host.how_bought import (
    CHANGES,
    JUDGE,
    LOWER_IS_BETTER,
    RACE,
    entries_of,
    metric_names,
    step_of,
)
from evalbudget_inspect.host.readings import ALL_ITEMS, STRATUM, STRATUM_ITEMS
from evalbudget_inspect.host.reducers import other_than_mean
from evalbudget_inspect.host.score_values import Seen
from evalbudget_inspect.reading.logs import several
from evalbudget_inspect.reading.parts import Part
from evalbudget_inspect.reading.scores import accuracies, clusters_named, entry_of, scorer_of

Range = tuple[float, float]


def ranges_of(parts: Sequence[Part], seen: Mapping[str, Seen]) -> dict[str, Range]:
    """Of each series whose scores can be in one range only: as a run of ours was told, or of their kind."""
    graded = {scorer for part in parts for scorer in accuracies(part.log.header)}
    found = {}
    for series, values in seen.items():
        known = values.range(accuracy=scorer_of(series, graded) is not None)
        if known is not None:
            found[series] = known
    told: dict[str, set[Range]] = {}
    for part in parts:
        for series, limits in limits_of(part.log.header).items():
            if series in seen:
                told.setdefault(series, set()).add(limits)
    for series, ranges in told.items():
        if len(ranges) == 1:
            found[series] = next(iter(ranges))
        else:  # the logs disagree
            found.pop(series, None)
    return found


def limits_of(header: EvalLog) -> dict[str, Range]:
    """The range that a run of ours was told of its score, by series."""
    found = {}
    for entry in entries_of(header):
        if entry.get("score_range") and entry.get("score"):
            low, high = entry["score_range"]
            found[entry["score"]] = float(low), float(high)
    return found


def lower_of(parts: Sequence[Part]) -> set[str]:
    """The series whose lowest mean a race, a gate or an audit of ours was for."""
    told = [step_of(part.log.header, RACE) or {} for part in parts]
    races = {str(each["score"]) for each in told if each.get("lower_is_better")}
    audited = [part.log.header.eval.metadata or {} for part in parts]
    return races | {str(each[JUDGE]) for each in audited if JUDGE in each and each.get(LOWER_IS_BETTER)}


_LOWER = re.compile(
    r"(?:^|[^a-z])(?:[cw]er|mae|r?mse|loss|perplexity|ppl|bits_per_\w+|brier|distance|errors?|fail(?:ure)?s?|"
    r"mistakes?|violations?|hallucinations?|toxicity|harm|refusals?|latency)(?:[^a-z]|$)",
    re.IGNORECASE,
)


def sounds_lower(parts: Sequence[Part], series: Sequence[str]) -> bool:
    """Whether a score or a metric has a name that lower is better for: no task says which way is better."""
    scorers = [scorer for part in parts for scorer in part.log.header.eval.scorers or []]
    names = {*series, *(name for scorer in scorers for name in metric_names(scorer.metrics))}
    return any(map(_LOWER.search, names))


def reducers_of(parts: Sequence[Part], series: Sequence[str]) -> dict[str, str]:
    """Of each series, how its task makes one score of an item's epochs, where that is not the mean alone."""
    found: dict[str, dict[str, None]] = {}
    for part in parts:
        header = part.log.header
        config, results = header.eval.config, header.results.scores if header.results else []
        for name in series:
            own = [s.reducer for s in results if name in (s.scorer, f"{s.scorer}.{s.name}") and s.reducer]
            found.setdefault(name, {}).update(dict.fromkeys(own or config.epochs_reducer or []))
    return {name: ", ".join(own) for name, own in found.items() if own and list(own) != ["mean"]}


def another_quantity(reducers: Mapping[str, str]) -> Iterator[str]:
    """Notes on series whose results in logs are not of the mean of an item's epochs, as what is read is."""
    for series, own in reducers.items():
        if others := other_than_mean(own.split(", ")):
            yield (
                f"The log's own results of {series} by reducer {' and by '.join(others)} are another "
                "quantity than what is said here, which is of the mean of an item's epochs."
            )


def changed_since(parts: Sequence[Part]) -> Iterator[str]:
    """Notes on runs that went on after their task had changed, as they said themselves."""
    for part in parts:
        for entry in entries_of(part.log.header):
            yield from (f"{part.log.name}: {change}" for change in entry.get(CHANGES, ()))


@dataclass(frozen=True, slots=True)
class Clusters:
    """What a task clusters its standard errors by.

    Attributes:
        labels: of each item, what it was sampled together with.
        cluster: the field that says so; None where none does.
        series: whose errors are clustered.
        notes: for people.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    cluster: str | None = None
    series: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def clusters_of(parts: Sequence[Part], series: Sequence[str]) -> Clusters:
    """As the logs' metrics of each series say."""
    fields: dict[str, set[str]] = {}
    for part, own in product(parts, series):
        for name in clusters_named(part.log.header, own):
            fields.setdefault(name, set()).add(own)
    if not fields:
        return Clusters()
    if len(fields) > 1:
        note = f"Standard errors are clustered by {' and by '.join(fields)}: clusters are taken as unknown."
        return Clusters(notes=(note,))
    ((field, clustered),) = fields.items()
    found: dict[str, str] = {}
    lacking, several_labels = set(), set()
    for part in parts:
        for sample in part.log.samples:
            item, label = part.item(sample.id), sample.metadata.get(field)
            if label is None:
                lacking.add(item)
            elif found.setdefault(item, str(label)) != str(label):
                several_labels.add(item)
    notes = []
    for items, what in ((lacking, "have none"), (several_labels, "have another one in another log")):
        if items:
            n = several(len(items), "item")
            notes.append(
                f"The task clusters its standard error by {field!r}, and {n} {what}: clusters are taken as "
                "unknown."
            )
    if notes:
        return Clusters(notes=tuple(notes))
    return Clusters({**labels_without_sample(parts, field), **found}, field, frozenset(clustered))


def labels_without_sample(parts: Sequence[Part], field: str) -> dict[str, str]:
    """What a field says of items without a sample, as a run of ours tells it; each its own if none does."""
    found: dict[str, str] = {}
    for part in parts:
        entries = entries_of(part.log.header)
        told = next((entry["clusters"].get(field) for entry in entries if "clusters" in entry), None) or {}
        for id_, _ in part.plan.lacking:
            found.setdefault(part.item(id_), str(told.get(id_, f"of {id_} alone")))
    return found


def is_one_measure(parts: Sequence[Part], raters: Sequence[str]) -> bool:
    """Whether raters measure the same: judges that took turns, or one scorer that asked several models."""
    rotating = [part.turns is not None for part in parts]
    if all(rotating) or len(raters) < 2:
        return True
    return not any(rotating) and any(_asks_judges(part.log.header, raters) for part in parts)


def _asks_judges(header: EvalLog, series: Sequence[str]) -> bool:
    """Whether all scorers are one scorer, of different models."""
    scorers = header.eval.scorers or []
    asked = [_model(scorer.options or {}) for scorer in scorers]
    same = len({_base(scorer.name) for scorer in scorers}) == 1
    return same and None not in asked and len(set(asked)) == len(scorers) == len(series)


def _base(name: str) -> str:
    """The scorer's own name; the host numbers a second one of the name."""
    return name.rstrip("0123456789").rstrip("_")


def _model(options: Mapping[str, Any]) -> str | None:
    asked = options.get("model") or options.get("model_role")
    return None if asked is None else str(asked)


def strata_of(parts: Sequence[Part], items: Sequence[str]) -> Strata | None:
    """The strata that the items were drawn by; None unless all that was read is one such sample.

    What failed has no score that says its stratum: it is that of scored items with the same value of the
    field, or else one of which nothing was scored.

    Args:
        parts: the logs.
        items: of the recorded scores.
    """
    found: dict[str, int] = {}
    values: dict[str, object] = {}
    sizes: dict[int, int] = {}
    whole: set[int] = set()
    for part in parts:
        field = next((entry["strata"] for entry in entries_of(part.log.header) if entry.get("strata")), None)
        for sample in part.log.samples:
            values[part.item(sample.id)] = sample.metadata.get(field) if field else None
            for score in (sample.scores or {}).values():
                entry = entry_of(sample, score)
                if STRATUM not in entry:
                    return None
                found[part.item(sample.id)] = int(entry[STRATUM])
                sizes[int(entry[STRATUM])] = int(entry[STRATUM_ITEMS])
                whole.add(int(entry[ALL_ITEMS]))
    if len(whole) != 1:
        return None
    by_value = {str(values[item]): stratum for item, stratum in found.items()}
    try:
        return Strata.of_read(
            [found.get(item, by_value.get(str(values.get(item)))) for item in items], sizes, whole.pop()
        )
    except InvalidInputError:  # another sample's sizes, or none for what failed
        return None
