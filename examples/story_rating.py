"""An ordinary inspect task: write a story, have a judge rate it. It knows nothing of evalbudget.

The metadata serves the offline judge ``simulated/...`` only: what the rating of each story would be on
average, and how much it varies from call to call.
"""

import random
import re

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState, generate

PLACES = ("harbour", "library", "greenhouse", "night train", "lighthouse", "bakery", "observatory", "ferry")
EVENTS = ("a letter arrives", "the power fails", "a stranger waits", "it snows in July", "a song repeats")
RATING = re.compile(r"RATING:\s*(-?\d+(?:\.\d+)?)")


@scorer(metrics=[mean(), stderr()])
def judge_rating() -> Scorer:
    """The rating a judge model gives; unscored if its reply holds none."""

    async def score(state: TaskState, target: Target) -> Score:
        judge = get_model(role="grader")
        reply = await judge.generate(
            f"Rate this story from 0 to 10 as 'RATING: x'.\n\n{state.output.completion}"
        )
        match = RATING.search(reply.completion)
        if match is None:
            return Score.unscored(explanation=f"no rating in {reply.completion!r}")
        return Score(value=float(match[1]), explanation=reply.completion)

    return score


@task
def story_rating(stories: int = 40) -> Task:
    """Rate short stories."""
    rng = random.Random(7)
    samples = [
        Sample(
            id=f"story-{i + 1:02d}",
            input=f"Write a short story set in a {PLACES[i % 8]} where {EVENTS[i % 5]}.",
            metadata={
                "simulated_mean": round(rng.uniform(3.5, 8.5), 2),
                # most stories are easy to rate, some split the judge
                "simulated_sd": 2.5 if i % 5 == 3 else round(rng.uniform(0.1, 0.6), 2),
            },
        )
        for i in range(stories)
    ]
    return Task(dataset=MemoryDataset(samples, name="stories"), solver=generate(), scorer=judge_rating())
