"""Small logs of the host for the tests of its reader, and what is read in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from inspect_ai import Task
from inspect_ai import eval as host_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.scorer import match
from inspect_ai.solver import Solver, TaskState
from tests.host_inspect.race_tasks import QUIET
from tests.host_inspect.worlds import solving

from evalbudget.backtest import RecordedScores
from evalbudget_inspect.reading.open_logs import open_scores

MODEL = "mockllm/model"

NOW: dict[str, Any] = {}
"""By what questions are answered, where that changes between a run and its retry."""


def saying(right: Callable[[TaskState], bool]) -> Solver:
    """Answers "yes" where it is right, and calls no model."""

    def say(state: TaskState) -> None:
        state.output.completion = "yes" if right(state) else "no"

    return solving(say)


def number(state: TaskState) -> int:
    """Of the question: the last word of what was asked."""
    return int(state.input_text.split()[-1])


def questions(numbers: Sequence[int], **sample: Any) -> MemoryDataset:
    """One for each number, with the number as its id; "yes" is right."""
    return MemoryDataset([Sample(input=f"question {n}", target="yes", id=n, **sample) for n in numbers])


def quiz(items: int, right: Callable[[TaskState], bool], **task: Any) -> Task:
    """A plain task whose answers are right as told."""
    given = {"dataset": questions(range(items)), "scorer": match(), "name": "quiz", **task}
    return Task(solver=saying(right), **given)


def logged(task: Any, folder: Path, **options: Any) -> EvalLog:
    """The log of one run."""
    (log,) = host_eval(task, **{"model": MODEL, "log_dir": str(folder), **QUIET, **options})
    return log


def path_of(log: EvalLog) -> Path:
    """Of a log's file."""
    return Path(log.location.removeprefix("file://"))


def rewritten(log: EvalLog, path: Path, **changes: Any) -> Path:
    """The same log, changed, at another path."""
    whole = read_eval_log(log.location)
    write_eval_log(whole.model_copy(update=changes), str(path))
    return path


def read(path: Path) -> RecordedScores:
    """What the reader makes of a log or a folder."""
    found = open_scores(path)
    assert found is not None
    return found


def means(recorded: RecordedScores) -> dict[str, float]:
    """Of each model, or of each rater where there is one model, by name."""
    if len(recorded.models) == 1:
        return dict(zip(recorded.raters, np.nanmean(recorded.true_scores[0], axis=0), strict=True))
    return {m: float(np.nanmean(recorded.true_scores[i])) for i, m in enumerate(recorded.models)}


def notes(recorded: RecordedScores) -> str:
    """All of them."""
    return " ".join(told(recorded))


def told(recorded: RecordedScores) -> Iterator[str]:
    """The notes."""
    assert recorded.declared is not None
    yield from recorded.declared.notes
