"""An answer whose score is missing is scored again: neither its model nor other scorers are asked again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inspect_ai import Task
from inspect_ai.event import ErrorEvent, SandboxEvent, SpanBeginEvent
from inspect_ai.log import EvalSample
from inspect_ai.scorer import Score, Scorer, Target
from inspect_ai.solver import Generate, Solver, TaskState, solver

from evalbudget_inspect.host.scoring import in_place_of
from evalbudget_inspect.repeats.kept_generation import Kept
from evalbudget_inspect.repeats.task import solvers_of


def is_answered(sample: EvalSample) -> bool:
    """Whether a log's sample has all that scorers need, whatever became of its scores.

    Not if scorers may look into a sandbox, which is gone, and not of multiple choice: the log does not say
    how the solver shuffled and marked the choices.
    """
    if sample.sandbox is not None or sample.choices:
        return False
    scoring = False
    for event in sample.events:
        if isinstance(event, SandboxEvent):
            return False
        if isinstance(event, ErrorEvent) and not scoring:
            return False  # with --score-on-error the host scores what broke off, too
        scoring = scoring or (isinstance(event, SpanBeginEvent) and event.name == "scorers")
    return sample.error is None or scoring


def keep_answers(task: Task, kept: Mapping[str, EvalSample], judge: str, names: Sequence[str]) -> None:
    """Have a task's solvers skip what is answered, and its scorers what is scored.

    Args:
        task: is changed.
        kept: samples of earlier logs, by id; each :func:`is_answered`.
        judge: the scorer that is asked again.
        names: of the task's scorers, in their order.
    """
    if not kept:
        return
    task.setup = [_restore(kept), *solvers_of(task.setup)]
    task.scorer = [
        scorer if name == judge else _as_scored(scorer, name, kept)
        for scorer, name in zip(task.scorer or [], names, strict=True)
    ]


@solver(name="evalbudget_inspect/kept_answer")
def _restore(kept: Mapping[str, EvalSample]) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        sample = kept.get(str(state.sample_id))
        if sample is not None:
            Kept.logged(sample).restore(state)
        return state

    return solve


def _as_scored(scorer: Scorer, name: str, kept: Mapping[str, EvalSample]) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score | None:
        sample = kept.get(str(state.sample_id))
        earlier = None if sample is None else (sample.scores or {}).get(name)
        return await scorer(state, target) if earlier is None else earlier

    return in_place_of(scorer, score)
