"""Judges that take turns, without a budget: ``inspect eval judged.py@judged --model simulated/writer``.

The judges are simulated: each says CORRECT with the probability ``mean``, whatever it is asked.
"""

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import model_graded_qa
from inspect_ai.solver import generate

from evalbudget_inspect import cyclic_judge


@task
def judged(judges: str = "judges.yaml", rotation: str = "cyclic") -> Task:
    """Every answer is graded by one judge of the panel."""
    return Task(dataset=questions(), solver=generate(), scorer=cyclic_judge(judges, rotation=rotation))


@task
def plain() -> Task:
    """The same with a single judge; it knows nothing of evalbudget."""
    return Task(dataset=questions(), solver=generate(), scorer=model_graded_qa())


def questions(n: int = 60) -> MemoryDataset:
    topics = ("law", "medicine", "history")
    samples = [
        Sample(
            id=f"q{i + 1:02d}", input=f"Question {i + 1}?", target="yes", metadata={"category": topics[i % 3]}
        )
        for i in range(n)
    ]
    return MemoryDataset(samples, name="questions")
