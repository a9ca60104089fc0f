"""The task that pages speak of where one scorer gives several scores, 0 to 4."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState


@scorer(metrics={"*": [mean()]})
def rubric() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        number = int(state.output.completion.split()[-1])
        return Score(value={"depth": number % 5, "style": number // 2 % 5})

    return score


@task
def my_task() -> Task:
    samples = [Sample(id=f"q{i}", input=f"Explain {i}.") for i in range(6)]
    return Task(dataset=samples, scorer=rubric())
