"""What earlier attempts of a run left in logs: samples that the host hands back, and others."""

from __future__ import annotations

import time
from datetime import datetime

import anyio.to_thread
from inspect_ai.log import (
    EvalLog,
    EvalLogInfo,
    EvalSample,
    EvalSampleSummary,
    list_eval_logs,
    read_eval_log,
    read_eval_log_sample_summaries,
)

from evalbudget.errors import InvalidInputError
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.book_file import folder_of
from evalbudget_inspect.host.current_run import EarlierLog, Run
from evalbudget_inspect.host.how_bought import paid_in_all
from evalbudget_inspect.host.private import is_cancellation_message

logger = shown_logger(__name__)

_AT_ONCE = 100
"""Samples that the host runs at once at most, where nobody limits them."""

_LOOKS = 20
_PAUSE = 0.1  # seconds between two looks


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
    """Samples of the log that a run goes on from, which the host does not hand back to it.

    It hands none back where the task has fewer samples than before, and not those that somebody marked as
    invalid.
    """
    return await anyio.to_thread.run_sync(_not_handed_back, run)


async def of_other_attempts(run: Run) -> list[EvalSampleSummary]:
    """Samples in logs beside the one that a run goes on from, which the host does not hand back to it.

    Of samples that failed those are left out that were tried again: the later try counts what failed before.
    """
    return await anyio.to_thread.run_sync(_of_other_attempts, run)


async def end_of_earlier(run: Run) -> tuple[bool, int]:
    """How the attempt ended whose log a run goes on from.

    Returns:
        Whether it may have asked anything; and of one that was killed, how many samples had begun at most,
        each as often as it may be tried.
    """
    return await anyio.to_thread.run_sync(_end_of_earlier, run)


async def told_of_earlier(run: Run, *, beside: bool) -> tuple[float, bool]:
    """What the log that a run goes on from says that it and all attempts before it paid, in scores.

    Args:
        run: that goes on.
        beside: logs beside that one are asked too: the highest counts.

    Returns:
        It; and whether the latest of these attempts ended by itself, and so says all.
    """
    return await anyio.to_thread.run_sync(_told_of_earlier, run, beside)


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
    handed_back = {name_of(summary) for summary in _handed_back(run)}
    return [summary for summary in _samples_of(log) if name_of(summary) not in handed_back]


def _of_other_attempts(run: Run) -> list[EvalSampleSummary]:
    log = run.goes_on_from
    if log is None or not log.location:
        return []
    here = _handed_back(run)
    known = {*map(name_of, here), *map(name_of, _samples_of(log))}
    tries = {(str(s.id), s.epoch): s.retries or 0 for s in here}
    found: dict[str, EvalSampleSummary] = {}
    for header in _headers_beside(run, log):
        if header.eval.eval_id == log.eval_id:
            continue
        for summary in _summaries(header.location):
            counts = summary.error and tries.get((str(summary.id), summary.epoch), 0) > (summary.retries or 0)
            if not counts:
                found[name_of(summary)] = summary
    return [summary for name, summary in found.items() if name not in known]


def _headers_beside(run: Run, log: EarlierLog) -> list[EvalLog]:
    """Of earlier attempts in the folder of a log, that log among them."""
    found = map(header_of, attempts_in(folder_of(log.location), run.spec.task_id))
    own = run.spec
    return [one for one in found if one.eval.task_id == own.task_id and one.eval.eval_id != own.eval_id]


def _header_of_earlier(run: Run) -> EvalLog | None:
    log = run.goes_on_from
    if log is None or not log.location:
        return None
    try:
        return read_eval_log(log.location, header_only=True)
    except FileNotFoundError:
        return None


def _told_of_earlier(run: Run, beside: bool) -> tuple[float, bool]:
    log, header = run.goes_on_from, _header_of_earlier(run)
    if log is None or header is None:
        return 0.0, False
    headers = [header, *(_headers_beside(run, log) if beside else ())]
    latest = max(headers, key=lambda one: datetime.fromisoformat(one.eval.created))
    told = [paid for one in headers if (paid := paid_in_all(one)) is not None]
    return max(told, default=0.0), latest.status == "success" and paid_in_all(latest) is not None


def _end_of_earlier(run: Run) -> tuple[bool, int]:
    header = _header_of_earlier(run)
    if header is None:
        return False, 0
    if header.status != "started":
        return bool(header.stats.model_usage), 0
    config = header.eval.config
    at_once = config.max_samples or header.eval.model_generate_config.max_connections or _AT_ONCE
    return True, at_once * (1 + (config.retry_on_error or 0))


def _samples_of(log: EarlierLog) -> list[EvalSampleSummary]:
    if log.samples is None:
        return _summaries(log.location)
    return [sample.summary() for sample in log.samples]
