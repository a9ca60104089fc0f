"""Which run am I in? Inspect's task-start hook runs in the task's own context and leaves the answer there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

import anyio.to_thread
from inspect_ai import Task
from inspect_ai.hooks import (
    BeforeModelGenerate,
    EvalSetStart,
    Hooks,
    ModelCacheUsageData,
    ModelRetry,
    RunEnd,
    RunStart,
    SampleAttemptEnd,
    SampleAttemptStart,
    TaskStart,
)
from inspect_ai.log import EvalSample, EvalSpec
from inspect_ai.model import GenerateConfig
from inspect_ai.solver import TaskState

from evalbudget.errors import EvalbudgetError
from evalbudget_inspect.host import bill, sent_again
from evalbudget_inspect.host.endings import note_endings
from evalbudget_inspect.host.host_frames import all_held_by_caller, held_by_caller
from evalbudget_inspect.host.interrupts import interrupts
from evalbudget_inspect.host.private import (
    EvalSampleSource,
    PreviousTask,
    get_eval_state,
)
from evalbudget_inspect.host.reducers import spare
from evalbudget_inspect.host.refusals import show_without_traceback
from evalbudget_inspect.host.scoring import rotates


@dataclass(frozen=True, slots=True)
class EarlierLog:
    """The log that a run was told to go on from, whether or not the host hands its samples back.

    Attributes:
        location: of it; empty if it is in memory only.
        eval_id: of the attempt that wrote it; empty if unknown.
        samples: of it, where they are in memory; None: they are read from its location.
        created: when that attempt began; empty if unknown.
    """

    location: str
    eval_id: str = ""
    samples: Sequence[EvalSample] | None = None
    created: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One task running with one model.

    Attributes:
        spec: inspect's description of it: sample ids after slicing, epochs, limits.
        log_location: where its log is written; empty if unknown.
        config: of generation, the model's own and the task's or the command's on top.
        earlier: the log whose samples the host hands back, or these samples; None for a first attempt.
        goes_on_from: the log that it was told to go on from; None for a first attempt.
        categories: of samples whose metadata holds a ``category``, by id; only where a scorer rotates judges.
        is_ours: a run, a race or an audit of ours, whose samples are waited for after Ctrl-C.
        refusal: why it cannot go on from its earlier attempts; None if it can.
        attempt_failed: of the task's source, called with the id and epoch of a sample; None if it has none.
    """

    spec: EvalSpec
    log_location: str
    config: GenerateConfig
    earlier: str | list[EvalSample] | None = None
    goes_on_from: EarlierLog | None = None
    categories: Mapping[str, str] = field(default_factory=dict)
    is_ours: bool = False
    refusal: EvalbudgetError | None = None
    attempt_failed: Callable[[str, int], None] | None = None


_OURS = "evalbudget_inspect."

current_run: ContextVar[Run | None] = ContextVar("evalbudget_run", default=None)
"""The run of this context; None outside ``eval`` (for example under ``inspect score``)."""

scored_state: ContextVar[TaskState | None] = ContextVar("evalbudget_scored_state", default=None)
"""What one of our scorers is scoring: where a log is scored, the host itself does not say."""


def asks_itself(task: Task | None) -> bool:
    """Whether a task of ours decides what is asked of it."""
    return task is not None and type(task.sample_source).__module__.startswith(_OURS)


def is_cancelled(run: Run) -> bool:
    """Whether an operator cancels or drains the task: what is asked now will not run."""
    state = get_eval_state(run.spec.eval_id)
    return state is not None and state.task_cancel is not None and state.task_cancel.cancel_type is not None


class Watcher(Protocol):
    """Whoever wants to know of whole runs, of several tasks and models."""

    def run_starts(self, run_id: str, task_names: Sequence[str]) -> None:
        """Called before the tasks of a run start, with the name of each."""

    def run_ends(self, run_id: str) -> None:
        """Called when all of them have ended."""


_watchers: list[Watcher] = []


def watch(watcher: Watcher) -> None:
    """Tell it of all runs from now on."""
    _watchers.append(watcher)


_at_the_end: list[Callable[[], None]] = []


def at_the_end(leave: Callable[[], None]) -> None:
    """Call this when the tasks of this run have ended, however they did."""
    _at_the_end.append(leave)


def _leave() -> None:
    while _at_the_end:
        _at_the_end.pop()()


_before_sets: list[Callable[[str, Sequence[Task]], None]] = []


def before_eval_sets(prepare: Callable[[str, Sequence[Task]], None]) -> None:
    """Have the log folder of every eval-set prepared before the host reads it, once by whoever asks.

    Args:
        prepare: given the folder, and the tasks that are no names.
    """
    if prepare not in _before_sets:
        _before_sets.append(prepare)


_earlier_logs: dict[str, EarlierLog] = {}


def told_to_go_on(task_id: str, log: EarlierLog) -> None:
    """Have a task of the run that starts know which log it was told to go on from."""
    _earlier_logs[task_id] = log


_before_runs: list[Callable[[], Awaitable[None]]] = []
_refusals: dict[str, EvalbudgetError] = {}
ANY_TASK = ""
"""In the place of a task's id."""


def before_runs(prepare: Callable[[], Awaitable[None]]) -> None:
    """Have the tasks of every run prepared before the host starts them."""
    _before_runs.append(prepare)


def cannot_go_on(task_id: str, error: EvalbudgetError) -> None:
    """Refuse a task once it starts: the host goes on whatever a hook raises."""
    _refusals[task_id] = error


class RunHooks(Hooks):
    """Leaves the running task's spec where its samples find it; ``listening`` registers it."""

    async def on_task_start(self, data: TaskStart) -> None:
        """Remember the run in the task's own context."""
        state = get_eval_state(data.eval_id)
        config = data.spec.model_generate_config.merge(data.plan.config)
        location = state.log_location if state is not None else ""
        task = held_by_caller(Task)
        source = None if task is None else task.sample_source
        starts, failed = getattr(source, "run_starts", None), getattr(source, "attempt_failed", None)
        is_ours = asks_itself(task) or (data.spec.task_registry_name or "").startswith("evalbudget_inspect/")
        refusal = _refusals.pop(data.spec.task_id, _refusals.get(ANY_TASK))
        earlier = _earlier()
        log = _as_log(earlier)
        if log is None or not log.location:  # the host tries a task again within a run, from its newest log
            log = _earlier_logs.get(data.spec.task_id, log)
        run = Run(
            spec=data.spec,
            log_location=location,
            config=config,
            earlier=earlier,
            goes_on_from=log,
            categories=_categories(task),
            is_ours=is_ours,
            refusal=refusal,
            attempt_failed=failed,
        )
        current_run.set(run)
        show_without_traceback()
        if task is not None and is_ours and task.epochs_reducer:
            task.epochs_reducer = [spare(reducer) for reducer in task.epochs_reducer]
        if starts is not None:  # a source of ours, in the task's own context, before its first sample
            starts(run)

    async def on_sample_attempt_start(self, data: SampleAttemptStart) -> None:
        """Begin nothing after Ctrl-C."""
        await sent_again.settle(data.sample_id)
        run = current_run.get()
        if run is not None and run.is_ours:
            interrupts.watch()
            await interrupts.begins(data.sample_id, run.spec.eval_id)

    async def on_sample_attempt_end(self, data: SampleAttemptEnd) -> None:
        """What it cost is known; others may go on."""
        run = current_run.get()
        try:
            bill.sample_ended(data.sample_id)
            await sent_again.settle(data.sample_id)
        finally:
            if run is not None and run.is_ours:
                interrupts.ends(data.sample_id)
            if run is not None and run.attempt_failed is not None and data.error is not None:
                run.attempt_failed(str(data.summary.id), data.summary.epoch)

    async def on_before_model_generate(self, data: BeforeModelGenerate) -> None:
        """A budget in money or tokens has room for the call, or it is not made."""
        await bill.before_call(data)

    async def on_model_cache_usage(self, data: ModelCacheUsageData) -> None:
        """The reply was at hand, and costs nothing."""
        bill.release_unsent()

    async def on_model_retry(self, data: ModelRetry) -> None:
        """A reply that the host cannot use may be billed too."""
        await sent_again.retried()

    async def on_eval_set_start(self, data: EvalSetStart) -> None:
        """Let logs be put in order before the host looks for those that it goes on from."""
        tasks = all_held_by_caller(Task)
        for prepare in _before_sets:
            await anyio.to_thread.run_sync(prepare, data.log_dir, tasks)

    async def on_run_start(self, data: RunStart) -> None:
        """Let races know how many tasks to wait for."""
        interrupts.release()  # a run whose loop was broken by Ctrl-C has not said that it ended
        bill.close_accounts()
        _leave()
        _refusals.clear()
        _earlier_logs.clear()
        for previous in all_held_by_caller(PreviousTask):
            told_to_go_on(previous.id, _log_of(previous))
        for prepare in _before_runs:
            await prepare()
        for watcher in _watchers:
            watcher.run_starts(data.run_id, data.task_names)

    async def on_run_end(self, data: RunEnd) -> None:
        """Let races know that nothing more comes, and the command how it ended."""
        interrupts.release()
        note_endings(data.logs)
        sent_again.forget_payers()
        _earlier_logs.clear()
        bill.close_accounts()
        _leave()
        for watcher in _watchers:
            watcher.run_ends(data.run_id)


def _earlier() -> str | list[EvalSample] | None:
    source = held_by_caller(EvalSampleSource)
    return None if source is None or source.seed is None else source.seed.source


def _as_log(earlier: str | list[EvalSample] | None) -> EarlierLog | None:
    if earlier is None or isinstance(earlier, str):
        return None if earlier is None else EarlierLog(earlier)
    return EarlierLog("", samples=earlier)


def _log_of(previous: PreviousTask) -> EarlierLog:
    log, info = previous.log, previous.log_info
    if info is not None:
        return EarlierLog(info.name, log.eval.eval_id, created=log.eval.created)
    return EarlierLog(log.location, log.eval.eval_id, log.samples or [], log.eval.created)


def _categories(task: Task | None) -> dict[str, str]:
    if task is None or not any(rotates(scorer) for scorer in task.scorer or []):
        return {}
    return {
        str(sample.id): str(sample.metadata["category"])
        for sample in task.dataset
        if sample.metadata is not None and "category" in sample.metadata
    }
