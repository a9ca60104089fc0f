"""What the tests of races share: a quiz, offline models of stated skill, and what the logs say."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from inspect_ai import Task
from inspect_ai import eval as host_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import Model, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate

from evalbudget_inspect import Leaderboard, leaderboard

QUIET: dict[str, Any] = {
    "display": "none",
    "log_realtime": False,
    "ctl_server": False,
    "score_display": False,  # all metrics of each model again and again
}


def quiz(items: int = 30, *, name: str = "quiz", **task: Any) -> Task:
    """An unmodified task: the answer is right if the model says C."""
    samples = [Sample(id=f"item-{i}", input=f"Question {i}?", target="C") for i in range(items)]
    given = {"solver": generate(), "scorer": match(location="exact"), **task}
    return Task(dataset=MemoryDataset(samples, name="questions", location="q.csv"), name=name, **given)


def model(name: str, mean: float, **args: Any) -> Model:
    """A model that is right with this probability on every item, and always the same on the same item."""
    given = {"bernoulli": True, "template": "{grade}", **args}
    return get_model(f"simulated/{name}", memoize=False, mean=mean, **given)


def three() -> list[Model]:
    """Models that are easy to tell apart."""
    return [model("a", 0.2), model("b", 0.95), model("c", 0.5)]


def run(task: Any, models: Any, log_dir: Any, **options: Any) -> list[EvalLog]:
    """All logs of one ``eval``."""
    given = {**QUIET, "log_buffer": 1000, **options}  # the log is copied whole after each so many samples
    logs = host_eval(task, model=models, log_dir=str(log_dir), **given)
    for log in logs:
        if log.error is not None:
            print(log.error.traceback)  # shown where a test fails
    return logs


def cells(logs: list[EvalLog]) -> dict[str, list[tuple[str, int]]]:
    """Every (id, epoch) of each model's log, sorted."""
    return {log.eval.model: sorted((str(s.id), s.epoch) for s in log.samples or []) for log in logs}


def attempts(logs: list[EvalLog]) -> int:
    """What the logs' samples cost, retries included."""
    return sum(
        len(s.error_retries or []) + (s.metadata.get("evalbudget") is None)
        for log in logs
        for s in log.samples or []
    )


def board(logs: list[EvalLog]) -> Leaderboard:
    """The race's leaderboard."""
    return leaderboard(logs)


def written(log: Path) -> int:
    """Samples in a log that is being written, without the seconds that the host takes to read them."""
    with suppress(BadZipFile), ZipFile(log) as file:  # nothing is in it yet
        return sum(name.startswith("samples/") for name in file.namelist())
    return 0
