"""Every answer counts once: copies, retries, later scorings, samples marked invalid, answers of a cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from inspect_ai.log import EvalSample, EvalSampleSummary
from inspect_ai.model import ChatMessageAssistant

from evalbudget.backtest import few
from evalbudget_inspect.host.earlier_attempts import is_begun
from evalbudget_inspect.host.not_run import is_refused
from evalbudget_inspect.reading.logs import Key, Log, read_samples, several
from evalbudget_inspect.repeats.earlier_log import is_from_cache

Cell = tuple[str, str, int]
"""Id of the task, which its retries have too, id of the sample, epoch."""


def count_once(logs: Sequence[Log]) -> tuple[list[Log], list[str]]:
    """Logs with the samples that count, and notes on those that do not; logs with nothing else are left out.

    Args:
        logs: oldest first.
    """
    found, notes = _latest(logs)
    found, more = _valid(found)
    return found, [*notes, *more]


def _latest(logs: Sequence[Log]) -> tuple[list[Log], list[str]]:
    """A sample stands where it was scored last, and one that a retry ran again only in the retry.

    One that was cut off on its way stands nowhere, nor does one that a retry which ended well has no more:
    the task has changed since, and the host took over what the retry could use.
    """
    seen: set[str] = set()
    cells: dict[Cell, int] = {}
    found: list[Log] = []
    double: dict[Path, int] = {}
    copies: list[str] = []
    later: dict[frozenset[str | None], list[Log]] = {}  # whose contents were not needed yet
    contents: set[frozenset[str]] = set()
    retried: set[Cell] = set()
    whole: set[str] = set()
    gone: dict[Path, int] = {}
    for number, log in reversed(list(enumerate(logs))):
        fresh = [s for s in log.all if s.uuid is None or s.uuid not in seen]
        # not what waited for its turn, nor what a retry counts
        paid = [s for s in fresh if not (s.error and (_cell(log, s) in retried or _waited(s)))]
        ran = [s for s in log.all if not _waited(s)]  # what waited says nothing of an earlier attempt at it
        seen.update(s.uuid for s in ran if s.uuid is not None)
        kept = [s for s in paid if not is_begun(s) and cells.setdefault(_cell(log, s), number) == number]
        uuids = frozenset(s.uuid for s in log.all)
        if log.header.eval.task_id in whole and kept:
            gone[log.file], kept = len(kept), []
        if log.header.status == "success":
            whole.add(log.header.eval.task_id)
        if more := sum(not is_begun(s) for s in log.all) - len(kept) - gone.get(log.file, 0):
            contents.update(map(_content, later.pop(uuids, ())))
            content = _content(log)
            if content in contents:
                copies.append(f"{log.name} is a copy of another log: its samples count once.")
            else:
                double[log.file] = more
            contents.add(content)
        else:
            later.setdefault(uuids, []).append(log)
        retried.update(_cell(log, s) for s in ran if s.retries)
        if kept or paid or not log.all:
            paid = paid if any(s.uuid is not None for s in paid) else kept
            found.append(replace(log, paid=paid, samples=kept))
    notes = few(copies[::-1], "logs are copies of others")
    if double:
        first = next(iter(reversed(double)))
        where = first.name if len(double) == 1 else f"{first.name} and {len(double) - 1:,} more"
        notes.append(
            f"Of {where}, {several(sum(double.values()), 'sample')} are in a later log too, of a retry or a "
            "later scoring: they count once, as that has them."
        )
    notes += [_left_out(file, n) for file, n in reversed(gone.items())]
    return found[::-1], notes


def _left_out(file: Path, n: int) -> str:
    are, they = ("is", "it counts") if n == 1 else ("are", "they count")
    return (
        f"Of {file.name}, {several(n, 'sample')} {are} not in the retry that ended the run, since the task "
        f"was another one then: {they} as paid, and for no mean."
    )


def _waited(sample: EvalSampleSummary) -> bool:
    """Whether a sample was cut off before anything of it was asked."""
    return is_begun(sample) and is_refused(sample.metadata)


def _content(log: Log) -> frozenset[str]:
    """What tells a copy, in whatever format, from a later scoring: every sample and all its scores."""
    return frozenset(
        f"{s.uuid} {s.id} {s.epoch} { {name: score.value for name, score in (s.scores or {}).items()} }"
        for s in log.all
    )


def _cell(log: Log, sample: EvalSampleSummary) -> Cell:
    return log.header.eval.task_id, str(sample.id), sample.epoch


def _valid(logs: Sequence[Log]) -> tuple[list[Log], list[str]]:
    """Without samples that somebody marked as invalid."""
    found, notes = [], []
    for log in logs:
        if not log.header.invalidated:
            found.append(log)
            continue
        keys = [(s.id, s.epoch) for s in log.samples]
        read = read_samples(log.file, keys, but={"events"})
        invalid = {(s.id, s.epoch) for s in read if s.invalidation is not None}
        if invalid:
            notes.append(
                f"{len(invalid):,} of {several(len(log.samples), 'sample')} of {log.name} "
                f"({log.header.eval.model}) were marked invalid, and are left out."
            )
        found.append(log.without(invalid))
    return found, few(notes, "logs have samples that were marked invalid")


def without_copies(logs: Sequence[Log], models: Sequence[str]) -> tuple[list[Log], list[str]]:
    """Without answers out of a cache that are answers which count already.

    The host counts no usage of them, and their messages have the ids of those that they are copies of.

    Args:
        logs: oldest first.
        models: of each log, the name under which its answers count.
    """
    cached = [_cached(log) for log in logs]
    wanted = {(model, str(id_)) for model, samples in zip(models, cached, strict=True) for id_, _ in samples}
    answers: set[tuple[str, str, str]] = set()
    for model, log, own in zip(models, logs, cached, strict=True):
        keys = [
            (s.id, s.epoch)
            for s in log.samples
            if (s.id, s.epoch) not in own and (model, str(s.id)) in wanted
        ]
        for sample in read_samples(log.file, keys, but={"events"}) if keys else ():
            answers.add((model, str(sample.id), _answer(sample)))
    found, copies, alone = [], Counter[str](), Counter[str]()
    for model, log, own in zip(models, logs, cached, strict=True):
        copied: set[Key] = set()
        for key, answer in own.items():
            place = (model, str(key[0]), answer)
            if place in answers:
                copied.add(key)
            answers.add(place)
        copies[model] += len(copied)
        alone[model] += len(own) - len(copied)
        found.append(log.without(copied))
    return found, [*_notes(copies, alone)]


def _notes(copies: Counter[str], alone: Counter[str]) -> Iterable[str]:
    for model, n in copies.items():
        if n:
            yield (
                f"{several(n, 'answer')} of {model} came out of a cache and are answers that are here "
                "already: each counts once."
            )
    for model, n in alone.items():
        if n:
            yield (
                f"{several(n, 'answer')} of {model} came out of a cache: a run before asked for them, whose "
                "log is not here."
            )


def _cached(log: Log) -> dict[Key, str]:
    """Samples whose answers all came out of a cache, with the id of the last one."""
    model = log.header.eval.model
    silent = [
        (s.id, s.epoch) for s in log.samples if s.turn_count and not s.error and model not in s.model_usage
    ]
    found = {}
    for sample in read_samples(log.file, silent) if silent else ():
        answer = _answer(sample)
        if answer and is_from_cache(sample):
            found[sample.id, sample.epoch] = answer
    return found


def _answer(sample: EvalSample) -> str:
    """The id of the message that was scored; empty where there is none."""
    for choice in sample.output.choices[:1]:
        return choice.message.id or ""
    said = [m.id or "" for m in sample.messages if isinstance(m, ChatMessageAssistant)]
    return said[-1] if said else ""
