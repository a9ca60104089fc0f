"""An ordinary inspect task for several models; it knows nothing of evalbudget.

The metadata serves the offline models ``simulated/...`` only: how likely each of them is to be right. They
answer right or wrong with ``-M bernoulli=true``; without it they give ratings, which are all wrong here.
"""

import math
import random

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, accuracy, scorer, stderr
from inspect_ai.solver import TaskState, generate

SKILL = {"alder": 1.2, "birch": 0.9, "cedar": 0.3, "dogwood": 0.2, "elm": -0.1, "fir": -0.4, "ginkgo": -0.9}
PROMPTS = {"plain": 0.0, "steps": 0.5, "terse": -0.5}


@scorer(metrics=[accuracy(), stderr()])
def answered() -> Scorer:
    """Whether the answer is right."""

    async def score(state: TaskState, target: Target) -> Score:
        return Score(value="C" if state.output.completion == "RATING: 1" else "I")

    return score


@task
def race_quiz(questions: int = 400, prompt: str = "plain") -> Task:
    """Questions of different difficulty."""
    rng = random.Random(11)
    samples = []
    for i in range(questions):
        ease = rng.gauss(0.4, 1.5) + PROMPTS[prompt]
        chance = {name: round(1 / (1 + math.exp(-skill - ease)), 3) for name, skill in SKILL.items()}
        samples.append(
            Sample(
                id=f"question-{i + 1:03d}",
                input=f"Question {i + 1}?",
                target="right",
                metadata={"simulated_mean": chance},
            )
        )
    return Task(dataset=MemoryDataset(samples, name="questions"), solver=generate(), scorer=answered())
