"""Has inspect tell us of its runs, from the first task or scorer of ours on.

Not from the start of every run: inspect prints which hooks there are, also where they have nothing to do.
"""

from __future__ import annotations

from types import FunctionType

from inspect_ai.hooks import hooks

from evalbudget_inspect.host.current_run import RunHooks, before_eval_sets, before_runs
from evalbudget_inspect.host.host_frames import held_as
from evalbudget_inspect.host.private import init_hooks
from evalbudget_inspect.host.spread import go_on
from evalbudget_inspect.host.union_of_logs import join_logs

_listening = False


def listen() -> None:
    """Register our hooks, once in a process; inspect has then printed those that it knows, without them."""
    global _listening
    if _listening:
        return
    _listening = True
    init_hooks()
    hooks(name="evalbudget", description="Tells evalbudget's samplers which task and model they serve.")(
        RunHooks
    )
    before_runs(go_on)
    before_eval_sets(lambda folder, tasks: join_logs(folder))
    folder = _folder_of_eval_set()
    if folder is not None:
        join_logs(folder)


def _folder_of_eval_set() -> str | None:
    """Of the logs of the eval-set that makes its tasks just now: it began before we could hear of it."""
    return held_as("log_dir", str) if held_as("try_eval", FunctionType) is not None else None
