"""Inspect logs as recorded scores: what was paid for once can be replayed for nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inspect_ai.log import (
    EvalLog,
    EvalSampleSummary,
    read_eval_log,
    read_eval_log_sample_summaries,
    read_eval_log_samples,
)
from inspect_ai.scorer import Score

from evalbudget.backtest import Bought, LogColumns, RecordedScores, TaskName, as_written_by
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.repeats import Repeat
from evalbudget_inspect.host.costs_in_logs import PaidSamples
from evalbudget_inspect.host.how_bought import bought
from evalbudget_inspect.host.readings import readings_of, was_asked, weight_of
from evalbudget_inspect.host.score_values import value_to_number
from evalbudget_inspect.host.scoring import FAILED, LABEL, METADATA
from evalbudget_inspect.host.shared_runs import SharedRuns

_SUFFIX = ".eval"
_TEXT = 1000  # characters; the core keeps fewer

Wanted = Callable[[EvalLog], bool]
"""Whether to read a log, told by its header."""


@dataclass(frozen=True, slots=True)
class _Turns:
    """How judges took turns in one log.

    Attributes:
        series: scorer, or scorer.key, whose raters are the judges.
        kept: whether all epochs of an item scored the same generation.
    """

    series: str
    kept: bool


def open_scores(
    path: Path, *, task: str | None = None, wanted: Wanted | None = None, category: str | None = None
) -> RecordedScores | None:
    """An inspect ``.eval`` log, or a folder of them; None if the path is neither.

    Models are the evaluated models, raters the scorers, repeats the epochs; several logs of the same task
    and model add up; a sample that a retried log took over from an earlier one counts once. Samples without a
    score, and scorers whose values are no numbers, are left out. Which epochs may count for a mean is told by
    ``purchases`` and ``epochs``. A reading costs what its whole sample did (``costs``): by the bill beside
    the log, or by what providers said, or by its usage at the host's prices. ``texts`` are the beginnings of
    the samples' inputs.

    Where judges took turns, raters are the judges, and scorers that asked no judge are left out. Of several
    scorers that did, the one that drove the sampler counts, or else the last one: a finished log that was
    scored again speaks for the judges who did it.

    Args:
        path: of the log or the folder.
        task: of several, the one to read; its name, with or without that of its package.
        wanted: told each log's header; those it does not want are left out, as are unreadable ones. The
            result is None if none is left.
        category: field of the samples' metadata that says what they belong to; None for none.

    Raises:
        InvalidInputError: a log is truncated or unreadable, logs of several tasks, or no score at all.
        UnknownNameError: no log is of this task.
    """
    files = _logs(path)
    if not files:
        return None
    columns, paid = LogColumns(), PaidSamples()
    tasks: set[str] = set()
    names: dict[TaskName, None] = {}
    labels: dict[str, str] = {}
    texts: dict[str, str] = {}
    purchases: dict[str, dict[str, Bought]] = {}
    kept = []
    others = set()
    logs = _each_once(files, wanted)
    shared = SharedRuns.of([header for _, header, _ in logs], path)
    for file, header, summaries in shared.counted(logs):
        if task is not None and task not in (header.eval.task, header.eval.task.rpartition("/")[2]):
            others.add(header.eval.task)
            continue
        tasks.add(header.eval.task)
        names[TaskName(header.eval.task.rpartition("/")[2], str(header.eval.task_version))] = None
        with as_written_by("inspect", file):
            turns = _turns(header, summaries)
            kept.append(turns is not None and turns.kept)
            own, log = purchases.setdefault(header.eval.model, {}), shared.log(header, file)
            own[log] = shared.together(header, own.get(log), bought(header, summaries))
            for summary in summaries if turns is None else sorted(summaries, key=lambda s: s.epoch):
                before = len(columns.scores)
                _add(columns, header, summary, log, turns)
                labels |= _category(summary, category, file)
                if str(summary.id) not in texts:
                    texts[str(summary.id)] = _text(summary)
                if len(columns.scores) > before:
                    columns.costs += [paid.cost(summary, file)] * (len(columns.scores) - before)
    if others and not tasks and task is not None:
        raise UnknownNameError(f"task in {path}:", task, others)
    if not tasks:
        return None
    if len(tasks) > 1:
        raise InvalidInputError(
            f"{path} holds logs of {len(tasks)} tasks ({', '.join(sorted(tasks))}), whose items are not "
            f"comparable; name one of them, for example --task {min(tasks)}"
        )
    if not columns.items:
        raise InvalidInputError(
            f"{path} holds no numeric score; was the eval run with --no-score or --no-log-samples?"
        )
    with as_written_by("inspect", path):
        recorded = columns.recorded(purchases)
        return replace(
            recorded,
            one_generation=all(kept),
            task=next(iter(names)) if len(names) == 1 else None,
            categories=tuple(labels[item] for item in recorded.items) if labels else None,
            texts=tuple(texts[item] for item in recorded.items),
        )


def _text(summary: EvalSampleSummary) -> str:
    """The beginning of what was asked; summaries have about a thousand characters of each message."""
    if isinstance(summary.input, str):
        return summary.input[:_TEXT]
    asked = [message for message in summary.input if message.role == "user"] or summary.input
    return "\n".join(message.text for message in asked)[:_TEXT]


def _category(summary: EvalSampleSummary, category: str | None, file: Path) -> dict[str, str]:
    """Of a sample, where one is asked for."""
    if category is None:
        return {}
    value = (summary.metadata or {}).get(category)
    if value is None:
        raise InvalidInputError(
            f"{file}: sample {summary.id!r} has no {category!r} in its metadata; give the name of a "
            "field that "
            "all samples have"
        )
    return {str(summary.id): str(value)}


def _logs(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.rglob(f"*{_SUFFIX}"))
    return [path] if path.suffix == _SUFFIX else []


def _read(file: Path) -> tuple[EvalLog, list[EvalSampleSummary]]:
    try:
        header = read_eval_log(str(file), header_only=True)
        return header, _whole(file, read_eval_log_sample_summaries(str(file)))
    except Exception as ex:  # the host raises whatever its zip and JSON readers raise
        raise InvalidInputError(
            f"{file} is not a readable inspect log ({type(ex).__name__}: {ex}); if the run was killed, "
            "finish it with inspect eval-retry"
        ) from ex


def _whole(file: Path, summaries: list[EvalSampleSummary]) -> list[EvalSampleSummary]:
    """Summaries with the readings of large panels: the host cuts metadata above a thousand characters."""
    cut = any(
        isinstance((score.metadata or {}).get(METADATA), str)
        for summary in summaries
        for score in (summary.scores or {}).values()
    )
    if not cut:
        return summaries
    scores = {
        (sample.id, sample.epoch): sample.scores
        for sample in read_eval_log_samples(str(file), all_samples_required=False)
    }
    return [s.model_copy(update={"scores": scores.get((s.id, s.epoch), s.scores)}) for s in summaries]


def _each_once(
    files: Sequence[Path], wanted: Wanted | None
) -> list[tuple[Path, EvalLog, list[EvalSampleSummary]]]:
    """Logs with what no later one holds as well; those that have nothing else left out."""
    seen: set[str] = set()
    found = []
    for file in reversed(files):  # names begin with the time
        try:
            header, summaries = _read(file)
        except InvalidInputError:
            if wanted is None:
                raise
            continue
        if wanted is not None and not wanted(header):
            continue
        fresh = [s for s in summaries if s.uuid is None or s.uuid not in seen]
        seen.update(s.uuid for s in fresh if s.uuid is not None)
        if fresh or not summaries:
            found.append((file, header, fresh))
    return found[::-1]


def _turns(header: EvalLog, summaries: Sequence[EvalSampleSummary]) -> _Turns | None:
    """None where judges did not take turns."""
    found: dict[str, None] = {}
    for summary in summaries:
        for scorer, score in (summary.scores or {}).items():
            if was_asked(_entry(score)):
                found |= dict.fromkeys(series for series, _ in _values(scorer, score.value))
    told = [(s.metadata or {}).get(METADATA) or {} for s in (header.results.scores if header.results else [])]
    ours = next((entry for entry in told if "score" in entry), {})
    if not found:
        return None
    series = ours["score"] if ours.get("score") in found else list(found)[-1]
    return _Turns(series, ours.get("repeat") == Repeat.JUDGE)


def _entry(score: Score) -> dict[str, Any]:
    entry = (score.metadata or {}).get(METADATA)
    return entry if isinstance(entry, dict) else {}


def _add(
    columns: LogColumns, header: EvalLog, summary: EvalSampleSummary, log: str, turns: _Turns | None
) -> None:
    if summary.error is not None:
        return
    for scorer, score in (summary.scores or {}).items():
        if LABEL in (score.metadata or {}) or _entry(score).get(FAILED):
            continue
        for series, value in _values(scorer, score.value):
            if turns is not None and series != turns.series:
                continue
            read = {series: value} if turns is None else readings_of(_entry(score), value)
            for rater, reading in read.items():
                if not math.isfinite(reading):
                    continue
                generation: object = (log, summary.epoch)
                if turns is not None and turns.kept:  # a judge's second score of it counts as one of another
                    again = columns.again.get((log, str(summary.id), rater), 0)
                    columns.again[log, str(summary.id), rater] = again + 1
                    generation = (log, again)
                columns.generations.append(generation)
                columns.items.append(str(summary.id))
                columns.scores.append(reading)
                columns.models.append(header.eval.model)
                columns.raters.append(rater)
                columns.repeats.append((log, summary.epoch))
                columns.logs.append(log)
                columns.epochs.append(summary.epoch)
                columns.weights.append(weight_of(_entry(score)))


def _values(scorer: str, value: object) -> Iterator[tuple[str, float]]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _values(f"{scorer}.{key}", part)
        return
    try:
        number = value_to_number(value, scorer)
    except InvalidInputError:
        return
    if math.isfinite(number):
        yield scorer, number
