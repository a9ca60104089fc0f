"""``--scorer``: a plugin's scorer in place of a task's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import match
from inspect_ai.solver import TaskState
from tests.host_inspect.worlds import solving

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_inspect import budgeted

NAME = "last_number"


def task(n: int = 6) -> Task:
    """Sums, the last of which has no target."""
    samples = [Sample(input=f"{i} + {i}?", target=str(2 * i), id=i, metadata={"i": i}) for i in range(1, n)]
    samples.append(Sample(input="?", target="none", id=n))
    return Task(dataset=samples, solver=solving(add), scorer=match())


def add(state: TaskState) -> None:
    number = int(state.metadata.get("i", 0))
    state.output = ModelOutput.from_content("m", f"it is {2 * number if number != 3 else 7}.")


def test_it_scores_in_place_of_the_tasks_scorers(run: Callable[..., Any], tmp_path: Path) -> None:
    log = run(budgeted(task(), budget="2x", sampler="uniform", scorer=NAME))
    assert {score.name for score in log.results.scores} == {NAME}
    values = {(one.id, one.epoch): one.scores[NAME].value for one in log.samples if one.scores}
    assert all(value == float(item != 3) for (item, _), value in values.items() if item < 6)
    assert all(math.isnan(value) for (item, _), value in values.items() if item == 6)
    metrics = {key: each for score in log.results.scores for key, each in score.metrics.items()}
    assert metrics["estimate"].value == pytest.approx(0.8)
    assert metrics["lower"].value >= 0.0


def test_what_it_cannot_score_is_refused() -> None:
    with pytest.raises(UnknownNameError, match=NAME):
        budgeted(task(), budget="2x", scorer="last_nubmer")
    with pytest.raises(InvalidInputError, match="says the same each time"):
        budgeted(task(), budget="2x", scorer=NAME, repeat="judge")
    with pytest.raises(InvalidInputError, match="drop one"):
        budgeted(task(), budget="2x", scorer=NAME, judges="a,b")
