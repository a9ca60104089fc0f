"""What earlier attempts of a run left: samples that the host hands back, and samples that had only begun."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import PurePosixPath

import anyio.to_thread
import fsspec  # type: ignore[import-untyped]
from inspect_ai.log import (
    EvalLogInfo,
    EvalSampleSummary,
    EvalSpec,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample_summaries,
)

from evalbudget.errors import InvalidInputError
from evalbudget_inspect.host.current_run import Run
from evalbudget_inspect.host.private import is_cancellation_message, read_buffer_recovery_data

_BUFFER = 10
"""Samples that the host keeps back at most before it writes them, where the log does not say."""
_AT_ONCE = range(10, 101)
"""Samples at once, where nobody limits them: what the host begins with, and where its own limit ends."""

Begun = dict[str, list[str]]
"""By attempt: the samples that it had begun and did not finish."""


async def handed_back(run: Run) -> list[EvalSampleSummary]:
    """Samples of earlier attempts that the host holds for this one; none on a first run.

    The host copies them into the new log before it starts, except those that a source adds under ``--limit``:
    these only when they are asked for.
    """
    return await anyio.to_thread.run_sync(_handed_back, run)


async def samples_begun(run: Run) -> int:
    """How many samples earlier attempts had begun when they were killed or cancelled.

    No log of the host keeps that once they run again. So it is noted in a file beside the logs, before
    anything is asked.
    """
    return await anyio.to_thread.run_sync(_samples_begun, run)


async def samples_begun_of(folder: str, task_id: str) -> int:
    """The same, of a task that has ended and is not run again."""
    begun = await anyio.to_thread.run_sync(_noted, _note(folder, task_id))
    return _count(begun)


def attempts_in(folder: str, task_id: str) -> list[EvalLogInfo]:
    """Logs of one task's attempts, the newest first."""
    infos = list_eval_logs(folder, recursive=False)
    named = [info for info in infos if task_id in info.name]
    found = named or infos  # logs may have been given names without it
    return sorted(found, key=lambda info: info.mtime or 0.0, reverse=True)


def is_begun(summary: EvalSampleSummary) -> bool:
    """Whether a sample was cut off on the way; the host runs it again."""
    return is_cancellation_message(summary.error)


def _handed_back(run: Run) -> list[EvalSampleSummary]:
    if not run.log_location:
        return []
    found = {(str(s.id), s.epoch): s for s in _earlier_samples(run) if run.spec.config.limit is not None}
    found |= {(str(s.id), s.epoch): s for s in _summaries(run.log_location)}
    return list(found.values())


def _earlier_samples(run: Run) -> list[EvalSampleSummary]:
    if isinstance(run.earlier, list):
        return [sample.summary() for sample in run.earlier]
    return [] if run.earlier is None else _summaries(run.earlier)


def _summaries(location: str) -> list[EvalSampleSummary]:
    try:
        return read_eval_log_sample_summaries(location)
    except FileNotFoundError:
        return []


def _samples_begun(run: Run) -> int:
    if not run.log_location or run.earlier is None:
        return 0
    folder = _folder(run.log_location)
    folders = {folder} | ({_folder(run.earlier)} if isinstance(run.earlier, str) else set())
    note = _note(folder, run.spec.task_id)
    noted = _noted(note)
    begun: Begun = dict(noted)
    for each in sorted(folders):
        begun |= _noted(f"{each}/{PurePosixPath(note).name}")
    for each in sorted(folders):
        _add_attempts(begun, each, run.spec)
    begun["handed back"] = sorted({*begun.get("handed back", ()), *_begun(_earlier_samples(run))})
    begun["handed back"] = sorted({*begun["handed back"], *_begun(_handed_back(run))})
    if begun != noted:
        _write(note, begun)
    return _count(begun)


def _note(folder: str, task_id: str) -> str:
    return f"{folder}/.evalbudget-{task_id}.json"


def _count(begun: Begun) -> int:
    return len({sample for samples in begun.values() for sample in samples})


def _add_attempts(begun: Begun, folder: str, spec: EvalSpec) -> None:
    killed: dict[str, tuple[str, EvalSpec]] = {}
    recovered: set[str] = set()
    for info in attempts_in(folder, spec.task_id):
        header = read_eval_log(info, header_only=True)
        its = header.eval
        if its.task_id != spec.task_id or its.eval_id == spec.eval_id:
            continue
        if header.status == "started":
            killed[its.eval_id] = (info.name, its)
        else:
            recovered.add(its.eval_id)
            begun[its.eval_id] = sorted({*begun.get(its.eval_id, ()), *_begun(_summaries(info.name))})
    for eval_id, (location, its) in killed.items():
        if eval_id in begun:
            continue
        buffer = read_buffer_recovery_data(location)
        if buffer is not None:
            begun[eval_id] = [str(sample.uuid) for sample in buffer.in_progress]
        else:
            most = _at_most(its, _summaries(location))
            begun[eval_id] = [f"{eval_id} {number}" for number in range(most)]


def _at_most(spec: EvalSpec, samples: Sequence[EvalSampleSummary]) -> int:
    """Samples that a killed attempt may have begun or not yet written, where its buffer is gone.

    Where nobody limits how many run at once, the host raises the limit step by step, at most twofold.
    """
    config, model = spec.config, spec.model_generate_config
    watched = min(max(2 * _peak(samples), _AT_ONCE[0]), _AT_ONCE[-1])
    kept_back = (config.log_buffer or min(_BUFFER, _planned(spec) // 3) or 1) - 1
    return (config.max_samples or model.max_connections or watched) + kept_back


def _peak(samples: Sequence[EvalSampleSummary]) -> int:
    """How many of these ran at once."""
    started = sorted(s.started_at for s in samples if s.started_at and s.completed_at)
    ended = sorted(s.completed_at for s in samples if s.started_at and s.completed_at)
    return max((k + 1 - bisect_left(ended, at) for k, at in enumerate(started)), default=0)


def _planned(spec: EvalSpec) -> int:
    return len(spec.dataset.sample_ids or []) * (spec.config.epochs or 1)


def _begun(summaries: Sequence[EvalSampleSummary]) -> set[str]:
    return {s.uuid or f"{s.id} {s.epoch}" for s in summaries if is_begun(s)}


def _folder(location: str) -> str:
    return location.rpartition("/")[0] or "."


def _noted(note: str) -> Begun:
    try:
        with fsspec.open(note, "r") as file:
            noted = dict(json.load(file))
            return {str(attempt): [str(sample) for sample in begun] for attempt, begun in noted.items()}
    except FileNotFoundError:
        return {}
    except (AttributeError, RecursionError, TypeError, ValueError) as ex:
        raise InvalidInputError(
            f"{note} is damaged ({ex}): it says which samples were under way at earlier kills. Restore it, "
            "or delete it, and those that no log of the folder tells of are not counted as spent"
        ) from ex


def _write(note: str, begun: Begun) -> None:
    system, path = fsspec.core.url_to_fs(note)
    with system.open(f"{path}.new", "w") as file:
        json.dump(begun, file)
    system.mv(f"{path}.new", path)
