"""A plugin's scorer as one of inspect's."""

from __future__ import annotations

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from evalbudget.hooks import plugins


def plugin_scorer(name: str) -> Scorer:
    """The scorer of that name, for a task.

    Raises:
        UnknownNameError: no plugin has one of that name.
    """
    made = plugins().scorer(name)()

    @scorer(metrics=[mean(), stderr()], name=name)
    def of_a_plugin() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            item = {**(state.metadata or {}), "input": state.input_text, "target": target.text}
            answer = state.output.completion
            return Score(value=float(made.score(item, answer)), answer=answer)

        return score

    return of_a_plugin()
