"""Tasks whose answers an expensive scorer can label by asking a model; they know nothing of evalbudget."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver


def _note(what: str) -> None:
    with Path(os.environ["LABELLED_CALLS"]).open("a") as calls:
        calls.write(f"{what}\n")


def _is(name: str, state: TaskState) -> bool:
    """Whether this answer is the one that a test has picked."""
    return os.environ.get(name) in ("all", f"{state.model} {state.sample_id}")


@solver
def write() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        _note(f"answer {state.model} {state.sample_id}")
        state.output = ModelOutput.from_content(str(state.model), f"Story for {state.sample_id}")
        return state

    return solve


def _level(state: TaskState) -> int:
    return 8 if str(state.model) == "mockllm/good" else 4


@scorer(metrics=[mean()])
def rating(manner: str = "kind") -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        _note(f"rating {state.model} {state.sample_id}")
        value: float | str = _level(state) + 1
        if _is("LABELLED_RATING_OFF", state):
            value = 11
        if _is("LABELLED_RATING_WORDS", state):
            value = "splendid"
        return Score(value=value, explanation=manner)

    return score


@scorer(metrics=[mean()])
def other() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=_level(state))

    return score


@scorer(metrics={"style": [mean()], "plot": [mean()]})
def aspects() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value={"style": _level(state), "plot": _level(state)})

    return score


@scorer(metrics=[mean()])
def juror() -> Scorer:
    def reply(value: int) -> ModelOutput:
        said = ModelOutput.from_content("mockllm/juror", f"I say {value}")
        said.usage = ModelUsage(input_tokens=30, output_tokens=4, total_tokens=34)
        return said

    async def score(state: TaskState, target: Target) -> Score:
        _note(f"juror {state.model} {state.sample_id}")
        if _is("LABELLED_HANGS", state):
            await anyio.sleep(600)
        if _is("LABELLED_RAISES", state):
            raise RuntimeError("the provider is down")
        value = 11 if _is("LABELLED_OFF", state) else _level(state)
        model = get_model("mockllm/juror", custom_outputs=[reply(value)], memoize=False)
        said = await model.generate("How good is it?")
        return Score(value=value, answer=str(value), explanation=said.completion)

    return score


def _task(items: int, scorers: list[Scorer]) -> Task:
    samples = [Sample(id=f"story-{i}", input=f"Write story {i}.") for i in range(items)]
    return Task(dataset=MemoryDataset(samples, name="stories"), solver=write(), scorer=scorers)


@task
def judged(items: int = 4, manner: str = "kind") -> Task:
    return _task(items, [rating(manner=manner), other(), juror()])


@task
def many_sided(items: int = 4) -> Task:
    return _task(items, [aspects(), other()])
