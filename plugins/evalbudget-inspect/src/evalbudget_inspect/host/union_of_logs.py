"""Before the host picks the newest log of a task to go on from: what only an older log holds joins it.

The newest log may lack what an older one has: the copy that the host writes of a killed run was itself cut
off, or ``--limit`` was set, under which the host copies samples only as they are asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import click
import fsspec  # type: ignore[import-untyped]
from inspect_ai.log import (
    EvalLog,
    read_eval_log,
    read_eval_log_sample,
    read_eval_log_sample_summaries,
    recover_eval_log,
    write_eval_log,
)

from evalbudget.errors import InvalidInputError
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.earlier_attempts import attempts_in, header_of, is_begun
from evalbudget_inspect.host.how_bought import metric_names
from evalbudget_inspect.host.private import RecoveryNotAvailable

logger = shown_logger(__name__)

_OURS = "evalbudget_inspect/"
_SUFFIX = ".eval"
_COPY = "-recovered.eval"
"""How the host ends the name of a copy of a killed log that has its buffered samples too."""

Key = tuple[str | int, int]


def join_logs(folder: str, task_id: str | None = None) -> None:
    """Make the newest log of each unfinished task of ours hold what any of its logs holds.

    Args:
        folder: of the logs.
        task_id: of the one task to look at; None for all.
    """
    by_task: dict[str, list[EvalLog]] = {}
    for info in attempts_in(folder, task_id or ""):
        try:
            header = read_eval_log(info, header_only=True)
        except Exception as ex:  # the host raises whatever its zip and JSON readers raise, and says so itself
            logger.debug("%s: %s", info.name, ex)
            continue
        if task_id in (None, header.eval.task_id) and _is_ours(header):
            by_task.setdefault(header.eval.task_id, []).append(header)
    for logs in by_task.values():
        if len(logs) > 1 and all(log.status != "success" for log in logs):
            _join(logs)


def join_into(location: str, task_id: str, folders: Collection[str]) -> None:
    """Make one log of a task hold what any of its logs holds; a run with failed samples may be a success.

    Args:
        location: of the log that the host goes on from.
        task_id: of its task; logs of other tasks may be written meanwhile.
        folders: of the task's logs.
    """
    logs = [read_eval_log(location, header_only=True)]
    infos = [info for folder in folders for info in attempts_in(folder, task_id)]
    for info in sorted(infos, key=lambda each: each.mtime or 0.0, reverse=True):
        if path_of(info.name) != path_of(location):
            header = header_of(info)
            logs += [header] if header.eval.task_id == task_id else []
    if len(logs) > 1:
        _join(logs)


def join_earlier(command: click.Command, args: Sequence[str]) -> list[str]:
    """The same for the logs that a command of the host is told to go on from.

    Args:
        command: the host's ``eval-retry``.
        args: what the user typed after it.

    Returns:
        The arguments, with logs as the host named them when it wrote them: of a killed run it looks by that
        name for what no log has yet, and finds nothing by ``../logs/LOG``.

    Raises:
        InvalidInputError: there is no such log.
    """
    context = command.make_context(command.name, list(args), resilient_parsing=True)
    locations = context.params.get("log_files") or ()
    for location in locations:
        try:
            task_id = read_eval_log(location, header_only=True).eval.task_id
        except FileNotFoundError as ex:
            raise InvalidInputError(
                f"there is no log {location}; inspect list logs shows those there are"
            ) from ex
        except Exception as ex:  # see join_logs
            logger.debug("%s: %s", location, ex)
            continue
        join_logs(location.rpartition("/")[0] or ".", task_id)
    return [_as_written(each) if each in locations else each for each in args]


def _as_written(location: str) -> str:
    """The host resolves a folder that is relative where it writes a log, and not where it reads one."""
    return location if "://" in location or Path(location).is_absolute() else str(Path(location).resolve())


def path_of(location: str) -> str:
    """Of a log, however its folder is written."""
    return str(fsspec.core.url_to_fs(location)[1])


def _is_ours(header: EvalLog) -> bool:
    names = [name for scorer in header.eval.scorers or [] for name in metric_names(scorer.metrics)]
    return any(name.startswith((_OURS, "eb/")) for name in names)


def _join(logs: Sequence[EvalLog]) -> None:
    """Let the first of the logs, which is the newest, hold what the others do."""
    newest = logs[0]
    paid = {key for key, begun in _cells(newest).items() if not begun}
    missing: dict[Key, str] = {}
    for log in logs[1:]:
        for key, begun in _cells(log).items():
            if not begun and key not in paid and key not in missing:
                missing[key] = log.location
    if not missing:
        return
    source, target = _with_buffer(logs), newest.location
    whole = read_eval_log(source)
    kept = [s for s in whole.samples or [] if (s.id, s.epoch) not in missing or s.error is None]
    there = {(s.id, s.epoch) for s in kept}
    others = [read_eval_log_sample(location, *key) for key, location in missing.items() if key not in there]
    status = "success" if whole.status == "success" else "error"
    joined = whole.model_copy(update={"samples": [*kept, *others], "status": status})
    write_eval_log(joined, f"{target}.new", format="eval" if target.endswith(_SUFFIX) else "json")
    system, path = fsspec.core.url_to_fs(target)
    system.mv(f"{path}.new", path)
    if source != target:
        system.rm(fsspec.core.url_to_fs(source)[1])
    logger.info("%d samples of older logs joined %s", len(others), target)


def _with_buffer(logs: Sequence[EvalLog]) -> str:
    """The newest log, with what the host has buffered of it."""
    newest = logs[0].location
    killed = newest.replace(_COPY, _SUFFIX)  # a copy that was cut off is made again
    if logs[0].status == "started" and any(log.location == killed for log in logs):
        try:
            return recover_eval_log(killed, cleanup=False).location
        except RecoveryNotAvailable as ex:
            logger.debug("%s: %s", newest, ex)
    return newest


def _cells(log: EvalLog) -> dict[Key, bool]:
    """Cells of a log, and whether they were cut off on the way."""
    return {(s.id, s.epoch): is_begun(s) for s in read_eval_log_sample_summaries(log.location)}
