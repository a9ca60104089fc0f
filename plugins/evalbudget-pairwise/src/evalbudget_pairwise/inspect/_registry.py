"""``inspect eval evalbudget_pairwise/pairwise -T logs=a.eval,b.eval -T budget=400 --model JUDGE``.

Inspect imports this in every run, also those that compare nothing: what the task needs is imported when it is
asked for.
"""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task


@task(name="pairwise")
def pairwise_entry(**args: Any) -> Task:
    """A judge compares the answers of finished logs.

    Args:
        args: ``logs`` and ``budget`` (or ``until_proved``) are needed; ``sampler``, ``orders``, ``template``,
            ``level``, ``record`` and ``seed`` as in :func:`~evalbudget_pairwise.inspect.pairwise`; others are
            options of the sampler.
    """
    from evalbudget_pairwise._hosts import check_installed

    check_installed("inspect")
    from evalbudget.errors import InvalidInputError
    from evalbudget_inspect.host.refusals import refusing
    from evalbudget_inspect.host.rewrite import NAME, arguments_of
    from evalbudget_pairwise.inspect.task import pairwise

    with refusing():
        ours = dict(args)
        if NAME in ours:
            ours |= arguments_of(ours.pop(NAME))
        logs = ours.pop("logs", None)
        logs = [logs] if isinstance(logs, str) else logs
        if not isinstance(logs, list | tuple) or not logs:
            raise InvalidInputError("which answers? Add -T logs=a.eval,b.eval, logs of two models or more")
        return pairwise([str(log) for log in logs], **ours)
