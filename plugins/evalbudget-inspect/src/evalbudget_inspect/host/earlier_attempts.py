"""What earlier attempts of a run left: samples that the host hands back, and samples that had only begun."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from types import MappingProxyType

import anyio.to_thread
import fsspec  # type: ignore[import-untyped]
from inspect_ai.log import (
    EvalLog,
    EvalLogInfo,
    EvalSample,
    EvalSampleSummary,
    EvalSpec,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample_summaries,
)

from evalbudget.errors import InvalidInputError, reason
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.attempt_notes import Note, folder_of, full_name, read_note, write_note
from evalbudget_inspect.host.current_run import EarlierLog, Run
from evalbudget_inspect.host.not_run import is_refused
from evalbudget_inspect.host.private import is_cancellation_message, read_buffer_recovery_data

logger = shown_logger(__name__)

_BUFFER = 10
"""Samples that the host keeps back at most before it writes them, where the log does not say."""
_AT_ONCE = range(10, 101)
"""Samples at once, where nobody limits them: what the host begins with, and where its own limit ends."""

_LOOKS = 20
_PAUSE = 0.1  # seconds between two looks

_HANDED_BACK = "handed back"


async def handed_back(run: Run) -> list[EvalSampleSummary]:
    """Samples of earlier attempts that the host holds for this one; none on a first run.

    The host copies them into the new log before it starts, except those that a source adds under ``--limit``:
    these only when they are asked for.

    Raises:
        EvalbudgetError: what earlier attempts left cannot be taken over.
    """
    if run.refusal is not None:
        raise run.refusal
    return await anyio.to_thread.run_sync(_handed_back, run)


async def not_handed_back(run: Run) -> list[EvalSampleSummary]:
    """Samples that earlier attempts finished or cut off, and that the host does not hand back to this one.

    It hands none back where the task has fewer samples than before, and not those that somebody marked as
    invalid. A sample that was tried again has in its log what failed before: each counts its own tries.

    Raises:
        EvalbudgetError: a log of theirs cannot be read.
    """
    return await anyio.to_thread.run_sync(_not_handed_back, run)


async def paid_for_nothing(run: Run, lost: Mapping[str, int] = MappingProxyType({})) -> Note:
    """What earlier attempts paid for that is in no log.

    Samples that had begun when they were killed or cancelled, those that failed and were to be tried again,
    and calls that were sent again.

    No log of the host keeps that once they run again. So it is noted before anything is asked.

    Args:
        run: that goes on.
        lost: by sample, how often it was asked, where this attempt cannot use its answer.
    """
    return await anyio.to_thread.run_sync(_paid_for_nothing, run, lost)


async def paid_for_nothing_of(folder: str, task_id: str) -> Note:
    """The same, of a task that has ended and is not run again."""
    return await anyio.to_thread.run_sync(read_note, folder, task_id)


def folders_of(run: Run) -> list[str]:
    """All folders in which attempts of a run that goes on have their logs, with its own.

    Raises:
        InvalidInputError: one is gone, or a note in it is damaged.
    """
    log = run.goes_on_from
    own = [folder_of(at) for at in (run.log_location, "" if log is None else log.location) if at]
    return folders_from(own, run.spec.task_id)


def folders_from(folders: Sequence[str], task_id: str) -> list[str]:
    """The same, of attempts at a task that have their logs in these folders, and in those noted there.

    Raises:
        InvalidInputError: as above.
    """
    left = list(folders)
    found = dict.fromkeys(map(full_name, left))
    while left:
        for folder in read_note(left.pop(), task_id).folders:
            if folder not in found:
                _check_there(folder)
                found[folder] = None
                left.append(folder)
    return sorted(found)


def attempts_in(folder: str, task_id: str) -> list[EvalLogInfo]:
    """Logs of one task's attempts, the newest first."""
    infos = list_eval_logs(folder, recursive=False)
    named = [info for info in infos if task_id in info.name]
    found = named or infos  # logs may have been given names without it
    return sorted(found, key=lambda info: info.mtime or 0.0, reverse=True)


def header_of(info: EvalLogInfo) -> EvalLog:
    """The header of a log, which another process may be replacing: a look may see parts of two versions.

    Raises:
        InvalidInputError: it cannot be read.
    """
    for _ in range(_LOOKS):
        try:
            return read_eval_log(info, header_only=True)
        except Exception as ex:  # the host raises whatever its zip and JSON readers raise
            error = InvalidInputError(f"{info.name} is no log: {ex}")
        time.sleep(_PAUSE)
    raise error


def holds_paid(location: str) -> bool:
    """Whether a log has samples that were asked anything."""
    return any(sample.model_usage for sample in _summaries(location))


def samples_of_error(location: str) -> list[EvalSample] | None:
    """Of a log whose run an error ended; None for another one, or where it cannot be read."""
    try:
        log = read_eval_log(location)
    except Exception as ex:  # the host raises whatever its zip and JSON readers raise
        logger.warning("%s cannot be read, so what was under way is not counted: %s", location, ex)
        return None
    return (log.samples or []) if log.status == "error" else None


def name_of(sample: EvalSample | EvalSampleSummary) -> str:
    """Of a sample, the same in all logs that have it."""
    return sample.uuid or f"{sample.id} {sample.epoch}"


def is_begun(summary: EvalSampleSummary) -> bool:
    """Whether a sample was cut off on the way; the host runs it again."""
    return is_cancellation_message(summary.error)


def _handed_back(run: Run) -> list[EvalSampleSummary]:
    if not run.log_location:
        return []
    found = {(str(s.id), s.epoch): s for s in _earlier_samples(run) if run.spec.config.limit is not None}
    found |= {(str(s.id), s.epoch): s for s in _summaries(run.log_location)}
    invalid = _invalid(run.goes_on_from)
    return [summary for summary in found.values() if name_of(summary) not in invalid]


def _invalid(log: EarlierLog | None) -> set[str]:
    """Names of samples of a log that somebody marked as invalid: the host runs them again."""
    if log is None:
        return set()
    samples = log.samples
    if samples is None:
        try:
            invalidated = read_eval_log(log.location, header_only=True).invalidated
        except FileNotFoundError:
            return set()
        samples = (read_eval_log(log.location).samples or []) if invalidated else []
    return {name_of(sample) for sample in samples if sample.invalidation is not None}


def _earlier_samples(run: Run) -> list[EvalSampleSummary]:
    if isinstance(run.earlier, list):
        return [sample.summary() for sample in run.earlier]
    return [] if run.earlier is None else _summaries(run.earlier)


def _summaries(location: str) -> list[EvalSampleSummary]:
    try:
        return read_eval_log_sample_summaries(location)
    except FileNotFoundError:
        return []


def _not_handed_back(run: Run) -> list[EvalSampleSummary]:
    log = run.goes_on_from
    if not run.log_location or log is None:
        return []
    handed_back = _handed_back(run)
    logs = {other.eval.eval_id: _finished_in(other) for other in _others(run, log)}
    # the host adds what is unwritten to the log, unless some of its samples were marked as invalid
    logs[log.eval_id] = [*_unwritten(log.location), *_samples_of(log)]
    before = _before(run)
    here = {_cell(summary): summary.retries or 0 for summary in handed_back}
    failed = {of: {_cell(s): s for s in samples if s.error is not None} for of, samples in logs.items()}
    left = {}
    for eval_id, samples in logs.items():
        is_ours = eval_id in (log.eval_id, *before(log.eval_id))
        earlier = [failed[each] for each in before(eval_id) if each in failed]
        for summary in samples:
            if is_ours and summary.error is not None and here.get(_cell(summary), -1) >= _tries(summary):
                continue  # what the host hands back counts them
            left[name_of(summary)] = _new_tries(summary, earlier)
    names = set(map(name_of, handed_back))
    return [summary for name, summary in left.items() if name not in names]


def _before(run: Run) -> Callable[[str], list[str]]:
    """Of an attempt, those that it went on from, the latest first; without those that nobody noted."""
    from_: dict[str, str] = {}
    for folder in folders_of(run):
        from_ |= read_note(folder, run.spec.task_id).went_on_from

    def before(eval_id: str) -> list[str]:
        found: list[str] = []
        while (eval_id := from_.get(eval_id, "")) and eval_id not in found:
            found.append(eval_id)
        return found

    return before


def _new_tries(
    summary: EvalSampleSummary, earlier: Sequence[Mapping[tuple[str, int], EvalSampleSummary]]
) -> EvalSampleSummary:
    """A sample without the tries that it has from what failed in the attempts before its own."""
    found = (each.get(_cell(summary)) for each in earlier)
    had = next((s for s in found if s is not None and name_of(s) != name_of(summary)), None)
    if had is None:
        return summary
    return summary.model_copy(update={"retries": max(0, (summary.retries or 0) - _tries(had))})


def _cell(summary: EvalSampleSummary) -> tuple[str, int]:
    return str(summary.id), summary.epoch


def _tries(sample: EvalSampleSummary) -> int:
    """Of a sample without an answer, how often it was paid as its log tells, and logs of later tries too."""
    return (sample.retries or 0) + (not is_begun(sample) and not is_refused(sample.metadata))


def _samples_of(log: EarlierLog) -> list[EvalSampleSummary]:
    if log.samples is None:
        return _summaries(log.location)
    return [sample.summary() for sample in log.samples]


def _finished_in(log: EvalLog) -> list[EvalSampleSummary]:
    """Samples of a log, with those that a killed attempt had not yet written."""
    unwritten = _unwritten(log.location) if log.status == "started" else []
    return [*unwritten, *_summaries(log.location)]


def _unwritten(location: str) -> list[EvalSampleSummary]:
    """Samples that a killed attempt had finished and not yet written."""
    buffer = read_buffer_recovery_data(location)
    return [] if buffer is None else buffer.completed


def _others(run: Run, log: EarlierLog) -> list[EvalLog]:
    """Headers of the attempts beside the one whose log this is."""
    spec, found = run.spec, []
    for folder in folders_of(run):
        for info in attempts_in(folder, spec.task_id):
            header = header_of(info)
            its = header.eval
            if its.task_id == spec.task_id and its.eval_id not in (spec.eval_id, log.eval_id):
                found.append(header)
    return found


def _check_there(folder: str) -> None:
    system, path = fsspec.core.url_to_fs(folder)
    if not system.exists(path):
        raise InvalidInputError(
            f"an attempt at this run has its logs in {folder}, which is gone, and what it spent is unknown. "
            "Put them back; or make an empty folder there, and what they spent is not counted"
        )


def _paid_for_nothing(run: Run, lost: Mapping[str, int]) -> Note:
    if not run.log_location or run.goes_on_from is None:
        return Note()
    folder, task_id = folder_of(run.log_location), run.spec.task_id
    folders = folders_of(run)
    note = read_note(folder, task_id)
    noted = deepcopy(note)
    note.lost |= lost
    note.went_on_from[run.spec.eval_id] = run.goes_on_from.eval_id
    if len(folders) > 1:
        _note_folders(run.goes_on_from, task_id, folders)
    for each in folders:
        note.join(read_note(each, task_id))
    for each in folders:
        _add_attempts(note, each, run.spec)
    handed_back = _begun(_samples_of(run.goes_on_from)) | _begun(_handed_back(run))
    note.begun[_HANDED_BACK] = sorted({*note.begun.get(_HANDED_BACK, ()), *handed_back})
    if note != noted:
        write_note(folder, task_id, note)
    return note


def _note_folders(log: EarlierLog, task_id: str, folders: Sequence[str]) -> None:
    """Have whoever goes on from the same log again find the attempts that are made elsewhere."""
    folder = folder_of(log.location)
    note = read_note(folder, task_id)
    if not set(folders) <= set(note.folders):
        note.join(Note(folders=list(folders)))
        try:
            write_note(folder, task_id, note)
        except OSError as ex:
            logger.warning(
                "%s cannot be written (%s), so a run that goes on from %s once more does not know what this "
                "one spends. Go on from this one's log only",
                folder,
                reason(ex),
                log.location,
            )


def _add_attempts(note: Note, folder: str, spec: EvalSpec) -> None:
    killed: dict[str, tuple[str, EvalSpec]] = {}
    for info in attempts_in(folder, spec.task_id):
        header = header_of(info)
        its = header.eval
        if its.task_id != spec.task_id or its.eval_id == spec.eval_id:
            continue
        if header.status == "started":
            killed[its.eval_id] = (info.name, its)
        else:
            cut_off = _begun(_summaries(info.name))
            note.begun[its.eval_id] = sorted({*note.begun.get(its.eval_id, ()), *cut_off})
            for name in cut_off:  # the log has how often it had failed before
                note.failed.get(its.eval_id, {}).pop(name, None)
    for eval_id, (location, its) in killed.items():
        if eval_id in note.begun or eval_id in note.guessed:
            continue
        buffer = read_buffer_recovery_data(location)
        if buffer is not None:
            note.begun[eval_id] = [str(sample.uuid) for sample in buffer.in_progress]
        else:
            note.guessed[eval_id] = _at_most(its, _summaries(location))


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
    return {name_of(s) for s in summaries if is_begun(s) and not is_refused(s.metadata)}
