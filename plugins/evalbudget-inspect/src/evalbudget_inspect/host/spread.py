"""An eval set that is spread over workers: each goes on from all that earlier attempts at its tasks bought.

A runner gives every worker a document that names its tasks, and for each perhaps a log to go on from
(``resume``). The host looks at no other log of the folder: what only these hold would be bought again.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace

import anyio.to_thread
from inspect_ai.log import EvalLog, EvalLogInfo, list_eval_logs

from evalbudget.errors import InvalidInputError
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.book_file import folder_of
from evalbudget_inspect.host.current_run import (
    ANY_TASK,
    EarlierLog,
    asks_itself,
    cannot_go_on,
    told_to_go_on,
)
from evalbudget_inspect.host.earlier_attempts import header_of, holds_paid
from evalbudget_inspect.host.host_frames import held_as, held_by_caller
from evalbudget_inspect.host.private import (
    EvalSetSelection,
    PrerequisiteError,
    ResolvedTask,
    clean_filename_component,
    resolve_previous_tasks,
    resumed_task,
    task_display_name,
    task_identifier,
)
from evalbudget_inspect.host.union_of_logs import join_into, path_of

logger = shown_logger(__name__)

VARIABLE = "INSPECT_EVAL_SET_SELECTION"
"""Where the host tells a worker of its document."""
_PATTERN = "INSPECT_EVAL_LOG_FILE_PATTERN"
"""Where the user tells the host what else than task and id the names of logs say."""


def is_worker() -> bool:
    """Whether this process runs some tasks of an eval set, and others run the rest."""
    return bool(os.environ.get(VARIABLE, "").strip())


def refuse_worker(why: str) -> None:
    """Refuse a task where others run beside it that it would have to know.

    Raises:
        InvalidInputError: this is a worker.
    """
    if is_worker():
        raise InvalidInputError(
            f"this process runs some tasks of an eval-set that is spread over several ({VARIABLE} is set), "
            f"and {why}"
        )


async def go_on() -> None:
    """Have the tasks of a worker go on from all attempts, before the host starts them."""
    if not is_worker():
        return
    selection = held_by_caller(EvalSetSelection)
    if selection is None and not held_as("eval_set_id", str):
        return
    tasks, folder = held_as("resolved_tasks", list), held_as("log_dir", str)
    if selection is None or tasks is None or folder is None or len(tasks) != len(selection.tasks):
        error = InvalidInputError(
            "inspect does not say which tasks this worker runs, and what earlier attempts at them bought "
            "would be bought again; run the eval set in one process"
        )
        cannot_go_on(ANY_TASK, error)
        return
    await anyio.to_thread.run_sync(_go_on, selection, tasks, folder)


def _go_on(selection: EvalSetSelection, tasks: list[ResolvedTask], folder: str) -> None:
    for place, (entry, task) in enumerate(zip(selection.tasks, tasks, strict=True)):
        if not asks_itself(task.task):
            continue
        try:
            tasks[place] = _from_all(task, entry.identifier, selection.eval_set_id, folder)
        except Exception as ex:  # the host raises whatever its zip and JSON readers raise
            why: object = ex.message if isinstance(ex, PrerequisiteError) else ex
            error = InvalidInputError(
                f"what earlier attempts at task {task.task.name!r} left in {folder} cannot be read, and "
                f"would be bought again ({why}). Repair that log, or begin anew in another folder"
            )
            cannot_go_on(task.id, error)


def _from_all(task: ResolvedTask, identifier: str, eval_set_id: str, folder: str) -> ResolvedTask:
    """The task with all that its earlier attempts left; itself if there were none."""
    named = _goes_on_from(task)
    folders = {folder} if named is None else {folder, folder_of(named)}
    paid = named is not None and holds_paid(named)
    newest = _newest(folders, task, identifier, eval_set_id, of_this_id=paid)
    if newest is not None and (named is None or path_of(newest.location) != path_of(named)):
        logger.warning(f"evalbudget: {task.task.name} goes on from {newest.location}, which is paid for")
        previous = resumed_task(task, identifier, newest.location)
        told_to_go_on(previous.id, EarlierLog(newest.location, newest.eval.eval_id))
        (found,) = resolve_previous_tasks([previous], None, task.model, task.model_roles)
        task = replace(found, sequence=task.sequence)
        named = _goes_on_from(task)
    if named is not None:
        join_into(named, task.id, folders)
    return task


def _goes_on_from(task: ResolvedTask) -> str | None:
    """The log whose samples the host will hand back."""
    seed = None if task.sample_source is None else task.sample_source.seed
    return seed.source if seed is not None and isinstance(seed.source, str) else None


def _newest(
    folders: Iterable[str], task: ResolvedTask, identifier: str, eval_set_id: str, *, of_this_id: bool
) -> EvalLog | None:
    """Header of the log of the last attempt at a task, whatever the document names.

    Attempts have one id. If the document names none that was paid for, it is that of the first: what a worker
    was refused began anew under another id, and is not gone on from.
    """
    found = []
    infos = [info for folder in folders for info in list_eval_logs(folder, recursive=False)]
    for info in sorted(infos, key=lambda each: each.mtime or 0.0, reverse=True):
        if _is_of_another(info, task):
            continue
        header = header_of(info)
        if header.eval.eval_set_id == eval_set_id and task_identifier(header, None) == identifier:
            found.append(header)
    first = min((header.eval for header in found), key=lambda spec: spec.created, default=None)
    task_id = task.id if of_this_id or first is None else first.task_id
    return next((header for header in found if header.eval.task_id == task_id), None)


def _is_of_another(info: EvalLogInfo, task: ResolvedTask) -> bool:
    """Whether the name of a log's file says that it is of another task."""
    if not os.environ.get(_PATTERN, "{task}_").startswith("{task}_"):
        return False
    return bool(info.task_id) and info.task != clean_filename_component(task_display_name(task.task.name))
