"""A task whose models and judges are paid for; it knows nothing of evalbudget."""

from __future__ import annotations

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState, generate

LEVEL = {"paid/a": 7, "paid/b": 3}


def right(model: str, item: str) -> int:
    """What people say of a system's answer."""
    return LEVEL[model] + int(item.partition("-")[2]) % 3 - 1


def _by(role: str, error: int) -> Scorer:
    @scorer(metrics=[mean()], name=role)
    def judged() -> Scorer:
        async def score(state: TaskState, target: Target) -> Score:
            await get_model(role=role).generate(f"{state.sample_id}: {state.output.completion}")
            wrong = int(str(state.sample_id).partition("-")[2]) * 7 % (2 * error + 1) - error
            return Score(value=right(str(state.model), str(state.sample_id)) + wrong)

        return score

    return judged()


@task
def graded(items: int = 60, calls: int = 1) -> Task:
    samples = [Sample(id=f"item-{i}", input=f"Write story {i}.") for i in range(items)]
    return Task(
        dataset=MemoryDataset(samples, name="stories"),
        solver=[generate()] * calls,
        scorer=[_by("grader", 1), _by("panel", 0)],
    )
