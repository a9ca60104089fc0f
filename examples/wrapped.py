"""The same as a task definition: ``inspect eval examples/wrapped.py --model ... -T budget=20x``."""

from inspect_ai import Task, task
from story_rating import story_rating

from evalbudget_inspect import budgeted


@task
def wrapped(budget: str = "10x") -> Task:
    """Story rating under a budget."""
    return budgeted(story_rating(), budget=budget, score_range="0..10")
