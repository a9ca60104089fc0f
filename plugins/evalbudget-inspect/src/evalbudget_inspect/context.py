"""Which run am I in? Inspect's task-start hook runs in the task's own context and leaves the answer there."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass

from inspect_ai._control.eval_state import get_eval_state
from inspect_ai.hooks import Hooks, TaskStart, hooks
from inspect_ai.log import EvalSpec


@dataclass(frozen=True, slots=True)
class Run:
    """One task running with one model.

    Attributes:
        spec: inspect's description of it: sample ids after slicing, epochs, limits.
        log_location: where its log is written; empty if unknown.
    """

    spec: EvalSpec
    log_location: str


_run: ContextVar[Run | None] = ContextVar("evalbudget_run", default=None)


def current_run() -> Run | None:
    """The run of this context; None outside ``eval`` (for example under ``inspect score``)."""
    return _run.get()


@hooks(name="evalbudget", description="Tells evalbudget's samplers which task and model they serve.")
class RunHooks(Hooks):
    """Leaves the running task's spec where its samples find it."""

    async def on_task_start(self, data: TaskStart) -> None:
        """Remember the run in the task's own context."""
        state = get_eval_state(data.eval_id)
        _run.set(Run(data.spec, state.log_location if state is not None else ""))
