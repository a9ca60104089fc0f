"""The task that pages speak of where they give a scale: a judge rates, 1 to 10."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState

ITEMS = 8


@scorer(metrics=[mean()])
def rating() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        question = f"Rate it, 1 to 10: {state.output.completion}"
        said = await get_model(role="grader").generate(question)
        return Score(value=float(said.completion.split()[-1]), explanation=said.completion)

    return score


@task
def my_task() -> Task:
    samples = [Sample(id=f"story {i}", input=f"Write a story of {i} words.") for i in range(ITEMS)]
    return Task(dataset=samples, scorer=rating())
