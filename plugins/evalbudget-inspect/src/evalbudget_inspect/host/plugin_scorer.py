"""A plugin's scorer as one of inspect's."""

from __future__ import annotations

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from evalbudget.errors import InvalidInputError
from evalbudget.hooks import plugins
from evalbudget_inspect.host.private_registry import registry_lookup

_registered: set[str] = set()
"""Names of plugins' scorers that inspect knows by now."""


def plugin_scorer(name: str) -> Scorer:
    """The scorer of that name, for a task.

    Raises:
        UnknownNameError: no plugin has one of that name.
        InvalidInputError: it has the name of one of this package.
    """
    made = plugins().scorer(name)()
    if name not in _registered and registry_lookup("scorer", f"evalbudget_inspect/{name}") is not None:
        raise InvalidInputError(
            f"a plugin's scorer is named {name!r}, as one of evalbudget-inspect is; it needs another name"
        )
    _registered.add(name)

    @scorer(metrics=[mean(), stderr()], name=name)
    def of_a_plugin() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            item = {**(state.metadata or {}), "input": state.input_text, "target": "\n".join(target)}
            answer = state.output.completion
            return Score(value=float(made.score(item, answer)), answer=answer)

        return score

    return of_a_plugin()
