"""A task with a cheap judge of known faults; it knows nothing of evalbudget."""

from __future__ import annotations

import os
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

LEVEL = {"mockllm/good": 8, "mockllm/same": 8, "mockllm/bad": 4}


def human(model: str, item: str) -> int:
    """What a human says of a system's answer."""
    return LEVEL[model] + (int(item.partition("-")[2]) % 3) - 1


@solver
def write() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model = str(state.model)
        with Path(os.environ["AUDITED_CALLS"]).open("a") as calls:
            calls.write(f"{model} {state.sample_id}\n")
        if os.environ.get("AUDITED_BROKEN") == f"{model} {state.sample_id}":
            raise RuntimeError("the system broke down")
        state.output = ModelOutput.from_content(model, f"Story for {state.sample_id}")
        return state

    return solve


@scorer(metrics=[mean()])
def rating() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        if os.environ.get("AUDITED_UNRATED") == f"{state.model} {state.sample_id}":
            with Path(os.environ["AUDITED_CALLS"]).open("a") as calls:
                calls.write(f"rating {state.model} {state.sample_id}\n")
            raise RuntimeError("the judge broke down")
        noise = (int(str(state.sample_id).partition("-")[2]) * 7) % 5 - 2
        value = max(1, min(10, human(str(state.model), str(state.sample_id)) + noise))
        return Score(value=value, explanation=f"Reasons for {value}")

    return score


@scorer(metrics=[mean()])
def panel() -> Scorer:
    """Expensive, and always right."""

    async def score(state: TaskState, target: Target) -> Score:
        with Path(os.environ["AUDITED_CALLS"]).open("a") as calls:
            calls.write(f"panel {state.model} {state.sample_id} {state.output.completion}\n")
        if os.environ.get("AUDITED_SILENT") == state.sample_id:
            return Score(value=float("nan"))
        return Score(value=human(str(state.model), str(state.sample_id)))

    return score


@task
def paneled(items: int = 300) -> Task:
    both = stories(items)
    both.scorer = [panel(), rating()]
    return both


@task
def stories(items: int = 300) -> Task:
    samples = [Sample(id=f"story-{i}", input=f"Write story {i}.") for i in range(items)]
    return Task(dataset=MemoryDataset(samples, name="stories"), solver=write(), scorer=rating())
