"""What samples say: values by scorer and key, who gave them, and which are not there."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from inspect_ai.log import EvalLog, EvalSampleSummary
from inspect_ai.scorer import Score

from evalbudget.design import LARGEST
from evalbudget.errors import InvalidInputError
from evalbudget.repeats import Repeat
from evalbudget_inspect.host.dict_scores import PREFIX
from evalbudget_inspect.host.how_bought import entries_of, metric_names
from evalbudget_inspect.host.readings import readings_of, was_asked
from evalbudget_inspect.host.score_values import Seen, value_to_number
from evalbudget_inspect.host.scoring import LABEL, METADATA, SHARE, stands_for
from evalbudget_inspect.reading.logs import Log

_OURS = ("evalbudget_inspect/", PREFIX)
"""Beginnings of the names of our metrics."""


@dataclass(frozen=True, slots=True)
class Turns:
    """How judges took turns in one log.

    Attributes:
        series: scorer, or scorer.key, whose raters are the judges.
        kept: whether all epochs of an item scored the same generation.
        judges: those that did.
    """

    series: str
    kept: bool
    judges: tuple[str, ...]


@dataclass
class Series:
    """Scorers, or scorer.key where scores are dicts, of all logs that are read.

    Attributes:
        numbers: those that ever gave a number, with what is known of their range.
        others: those that gave something else, with what it was.
    """

    numbers: dict[str, Seen] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, logs: Sequence[Log]) -> Series:
        """Of every sample that counts."""
        found = cls()
        for log in logs:
            for sample in log.samples:
                for series, value in said_by(sample):
                    if math.isfinite(as_number(series, value)):
                        found.numbers.setdefault(series, Seen()).add(value)
                    elif isinstance(value, (str, list)):
                        found.others[series] = "words" if isinstance(value, str) else "lists"
        if not found.numbers and not found.others:
            found.numbers = {name: Seen() for log in logs for name in _all_missing(log)}
        return found

    @property
    def left_out(self) -> list[str]:
        """Sentences on those that never gave a number."""
        return [
            f"Scorer {series!r} gives {what} and no numbers, and is left out."
            for series, what in self.others.items()
            if series not in self.numbers
        ]

    def of_log(self, log: Log) -> tuple[str, ...]:
        """Those that an answer in a log should have: where it has none at all, its scorers' in other logs."""
        here = {series for sample in log.samples for series, _ in said_by(sample)}
        own = tuple(series for series in self.numbers if series in here)
        if own or log.header.eval.scorers is None:
            return own or tuple(self.numbers)
        scorers = {scorer.name.rpartition("/")[2] for scorer in log.header.eval.scorers}
        return tuple(series for series in self.numbers if scorer_of(series, scorers) is not None)


_GLOB = {*"*?["}


def _all_missing(log: Log) -> Iterator[str]:
    """The series that a log's answers should have, where each ended in an error or its score is no number."""
    if not log.samples or any(sample.error is None and not sample.scores for sample in log.samples):
        return
    said = [series for sample in log.samples for series, _ in said_by(sample)]
    yield from said
    for scorer in () if said else log.header.eval.scorers or ():
        own = scorer.name.rpartition("/")[2]
        keys = scorer.metrics if isinstance(scorer.metrics, Mapping) else ()
        yield from [f"{own}.{key}" for key in keys if not _GLOB & {*key}] or [own]


def said_by(sample: EvalSampleSummary) -> Iterator[tuple[str, object]]:
    """Every value of a sample's scores, labels of an audit left out."""
    for scorer, score in (sample.scores or {}).items():
        if LABEL not in (score.metadata or {}):
            yield from parts_of(scorer, score.value)


def parts_of(scorer: str, value: object) -> Iterator[tuple[str, object]]:
    """A score's values by ``scorer.key``; a plain one by its scorer."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from parts_of(f"{scorer}.{key}", part)
    else:
        yield scorer, value


def as_number(series: str, value: object) -> float:
    """Nan for what is none."""
    try:
        number = value_to_number(value, series)
    except InvalidInputError:
        return math.nan
    return number if abs(number) <= LARGEST else math.nan


def scorer_of(series: str, scorers: Mapping[str, Any] | Set[str]) -> str | None:
    """Whose values a series has; None for nobody's of these."""
    return next((name for name in scorers if series == name or series.startswith(f"{name}.")), None)


def entry_of(sample: EvalSampleSummary, score: Score | None) -> dict[str, Any]:
    """Ours of a score; of one that was given later, what the sample itself says of how it was bought."""
    entry = None if score is None else (score.metadata or {}).get(METADATA)
    share = sample.metadata.get(SHARE)
    own = entry if isinstance(entry, dict) else {}
    return own if "phase" in own or not isinstance(share, dict) else {**share, **own}


def turns_in(header: EvalLog, samples: Sequence[EvalSampleSummary]) -> Turns | None:
    """None where judges did not take turns.

    Of several scorers that asked judges, the one that drove the sampler counts, or else the last one: a
    finished log that was scored again speaks for the judges who did it.
    """
    found: dict[str, None] = {}
    judges: dict[str, dict[str, None]] = {}
    for sample in samples:
        for scorer, score in (sample.scores or {}).items():
            entry = (score.metadata or {}).get(METADATA)
            if isinstance(entry, dict) and was_asked(entry):
                own = dict.fromkeys(readings_of(entry))
                for series, value in parts_of(scorer, score.value):
                    if math.isfinite(as_number(series, value)):
                        found[series] = None
                    judges.setdefault(series, {}).update(own)
    if not found:
        return None
    ours = next((entry for entry in entries_of(header) if "score" in entry), {})
    series = ours["score"] if ours.get("score") in found else list(found)[-1]
    return Turns(series, ours.get("repeat") == Repeat.JUDGE, tuple(judges[series]))


@dataclass(frozen=True, slots=True)
class Reading:
    """One score of one answer; nan where there should be one.

    Attributes:
        rater: scorer, scorer.key or judge.
        value: the score.
        phase: of the reading, nan if it has none.
    """

    rater: str
    value: float
    entry: Mapping[str, Any]


def readings_in(sample: EvalSampleSummary, turns: Turns | None, expected: Sequence[str]) -> Iterator[Reading]:
    """What a sample says, and what it should say and does not.

    A sample that ended in an error and was scored nevertheless counts, as it does for the host.

    Args:
        sample: of a log.
        turns: of judges, if they took turns in it; others' scores are left out then.
        expected: the series that answers in this log have.
    """
    if turns is not None:
        yield from _by_judges(sample, turns)
        return
    scores = {
        name: score for name, score in (sample.scores or {}).items() if LABEL not in (score.metadata or {})
    }
    said = {s: v for name, score in scores.items() for s, v in parts_of(name, score.value)}
    for series in expected:
        name = scorer_of(series, scores)
        if name is not None and series not in said:
            continue  # a key that this answer's score does not have does not apply to it
        entry = entry_of(sample, None if name is None else scores[name])
        value = as_number(series, said.get(series))
        yield Reading(series, value, entry)


def _by_judges(sample: EvalSampleSummary, turns: Turns) -> Iterator[Reading]:
    for name, score in (sample.scores or {}).items():
        entry = entry_of(sample, score)
        for series, value in parts_of(name, score.value):
            if series != turns.series:
                continue
            given = readings_of(entry, as_number(series, value))
            for judge, read in given.items():
                yield Reading(judge, read, entry)
            if given:
                return
    # nobody knows whose turn it was: it stands with one of them, so that the answer is known to be missing
    yield Reading(turns.judges[0], math.nan, {})


def clusters_named(header: EvalLog, series: str) -> list[str]:
    """Fields of samples' metadata by which the metrics of a series cluster items.

    They are of the task, its scorer or, where scores are dicts, its key; rows of ours say by which the run
    went.
    """
    told = list(_metrics_of(header, series))
    ours = [options for name, options in told if name.startswith(_OURS) and "cluster" in options]
    fields = [options.get("cluster") for options in ours or [options for _, options in told]]
    return [field for field in dict.fromkeys(fields) if isinstance(field, str)]


def _metrics_of(header: EvalLog, series: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Name and options of each metric of a series, as declared and as the results say."""
    for scorer in header.eval.scorers or []:
        own = scorer.name.rpartition("/")[2]
        if scorer_of(series, {own}) is not None:
            key = series.removeprefix(own).removeprefix(".")
            for metrics in (scorer.metrics, header.eval.metrics):
                yield from _of_key(metrics, key)
    for score in header.results.scores if header.results else []:
        of = score.scorer if score.name == score.scorer else f"{score.scorer}.{score.name}"
        if scorer_of(series, {of}) is not None:
            yield from ((name, metric.params) for name, metric in score.metrics.items())


def _of_key(metrics: Any, key: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Names and options; of what several patterns say of a key, the host computes the first of each name."""
    if isinstance(metrics, Mapping):
        found: list[tuple[str, Mapping[str, Any]]] = []
        for pattern, part in metrics.items():
            if stands_for(pattern, key):
                known = {name for name, _ in found}
                found += [each for each in _of_key(part, key) if each[0] not in known]
        return found
    if isinstance(metrics, Sequence) and not isinstance(metrics, str):
        return [each for part in metrics for each in _of_key(part, key)]
    return [] if metrics is None else [(metrics.name, metrics.options or {})]


def accuracies(header: EvalLog) -> set[str]:
    """Scorers whose metrics have the host's accuracy."""
    return {
        scorer.name.rpartition("/")[2]
        for scorer in header.eval.scorers or []
        if any(name.rpartition("/")[2] == "accuracy" for name in metric_names(scorer.metrics))
    }
