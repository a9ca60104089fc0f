"""Tasks for inspect that know nothing of evalbudget; each request says which attempt it is."""

from __future__ import annotations

import re

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver


@solver
def numbered() -> Solver:
    """The prompt names its attempt, so that a server sees what is asked twice."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state.user_prompt.text += f" Attempt {state.epoch}."
        return state

    return solve


@scorer(metrics=[mean()])
def right() -> Scorer:
    """Whether the answer is the item's number."""

    async def score(state: TaskState, target: Target) -> Score:
        said = re.search(r"Answer: (\d+)", state.output.completion)
        return Score(value=float(said is not None and said[1] == target.text))

    return score


async def _asked(role: str, state: TaskState) -> Score:
    reply = await get_model(role=role).generate(
        f"Rate this.\n{state.user_prompt.text}\n{state.output.completion}"
    )
    said = re.search(r"RATING: (\d+)", reply.completion)
    return Score(value=float(said[1]) if said else float("nan"), explanation=reply.completion)


@scorer(metrics=[mean()])
def rated() -> Scorer:
    """What the model in the role ``grader`` says."""

    async def score(state: TaskState, target: Target) -> Score:
        return await _asked("grader", state)

    return score


@scorer(metrics=[mean()])
def labelled() -> Scorer:
    """What the model in the role ``auditor`` says."""

    async def score(state: TaskState, target: Target) -> Score:
        return await _asked("auditor", state)

    return score


def _task(items: int, scoring: Scorer | list[Scorer]) -> Task:
    samples = [Sample(id=f"item-{i}", input=f"Question {i}.", target=f"{i % 10}") for i in range(items)]
    return Task(dataset=MemoryDataset(samples), solver=[numbered(), generate()], scorer=scoring)


@task
def quiz(items: int = 12) -> Task:
    """Right or wrong."""
    return _task(items, right())


@task
def essays(items: int = 8) -> Task:
    """Rated by a model."""
    return _task(items, rated())


@task
def audited(items: int = 20) -> Task:
    """Rated by a model, and by a better one."""
    return _task(items, [rated(), labelled()])
