"""Inspect logs as recorded scores: what was paid for once can be replayed for nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inspect_ai.log import EvalLog, EvalSampleSummary, read_eval_log, read_eval_log_sample_summaries
from inspect_ai.scorer import Score

from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError
from evalbudget_inspect.rotating import was_asked
from evalbudget_inspect.scoring import METADATA
from evalbudget_inspect.values import value_to_number

_SUFFIX = ".eval"


@dataclass(slots=True)
class _Columns:
    items: list[str] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    raters: list[str] = field(default_factory=list)
    repeats: list[object] = field(default_factory=list)


def open_scores(path: Path) -> RecordedScores | None:
    """An inspect ``.eval`` log, or a folder of them; None if the path is neither.

    Models are the evaluated models, raters the scorers, repeats the epochs; several logs of the same task
    and model add up. Samples without a score, and scorers whose values are no numbers, are left out.

    Where judges took turns, raters are the judges, and scorers that asked no judge are left out. Of several
    scorers that did, the one that drove the sampler counts.

    Raises:
        InvalidInputError: a log is truncated or unreadable, logs of several tasks, or no score at all.
    """
    files = _logs(path)
    if not files:
        return None
    columns = _Columns()
    tasks: dict[str, Path] = {}
    for file in files:
        header, summaries = _read(file)
        tasks.setdefault(header.eval.task, file)
        judged = _judged(header, summaries)
        for summary in summaries:
            _add(columns, header, summary, file, judged)
    if len(tasks) > 1:
        raise InvalidInputError(
            f"{path} holds logs of {len(tasks)} tasks ({', '.join(sorted(tasks))}), whose items are not "
            f"comparable; give the logs of one task, for example {next(iter(tasks.values()))}"
        )
    if not columns.items:
        raise InvalidInputError(
            f"{path} holds no numeric score; was the eval run with --no-score or --no-log-samples?"
        )
    return RecordedScores.from_readings(
        columns.items,
        columns.scores,
        models=columns.models,
        raters=columns.raters,
        repeats=columns.repeats,
    )


def _logs(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.rglob(f"*{_SUFFIX}"))
    return [path] if path.suffix == _SUFFIX else []


def _read(file: Path) -> tuple[EvalLog, list[EvalSampleSummary]]:
    try:
        return read_eval_log(str(file), header_only=True), read_eval_log_sample_summaries(str(file))
    except Exception as ex:  # the host raises whatever its zip and JSON readers raise
        raise InvalidInputError(
            f"{file} is not a readable inspect log ({type(ex).__name__}: {ex}); if the run was killed, "
            "finish it with inspect eval-retry"
        ) from ex


def _judged(header: EvalLog, summaries: Sequence[EvalSampleSummary]) -> str | None:
    """The series (scorer, or scorer.key) whose raters are judges; None where judges did not take turns."""
    found: dict[str, None] = {}
    for summary in summaries:
        for scorer, score in (summary.scores or {}).items():
            if was_asked(_entry(score)):
                found |= dict.fromkeys(series for series, _ in _values(scorer, score.value))
    told = [(s.metadata or {}).get(METADATA) or {} for s in (header.results.scores if header.results else [])]
    drives = next((str(ours["score"]) for ours in told if "score" in ours), None)
    return drives if drives in found else next(iter(found), None)


def _entry(score: Score) -> dict[str, Any]:
    entry = (score.metadata or {}).get(METADATA)
    return entry if isinstance(entry, dict) else {}


def _add(
    columns: _Columns, header: EvalLog, summary: EvalSampleSummary, file: Path, judged: str | None
) -> None:
    if summary.error is not None:
        return
    for scorer, score in (summary.scores or {}).items():
        for series, value in _values(scorer, score.value):
            if judged is not None and (series != judged or "judge" not in _entry(score)):
                continue
            columns.items.append(str(summary.id))
            columns.scores.append(value)
            columns.models.append(header.eval.model)
            columns.raters.append(series if judged is None else str(_entry(score)["judge"]))
            columns.repeats.append((str(file), summary.epoch))


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
