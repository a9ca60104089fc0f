"""The task is changed between a run that ended early and the host's eval-retry."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import eval_retry, eval_set
from inspect_ai.log import EvalLog, read_eval_log
from tests.host_inspect.race_tasks import QUIET
from tests.host_inspect.worlds import entry_of

from evalbudget.run import UNANSWERED
from evalbudget_inspect.repeats.earlier_log import NOT_PAID, is_refused
from evalbudget_inspect.repeats.resume import LOST

BUDGET, STOP = 24, 10

TASK_FILE = """
import json
from pathlib import Path
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import generate, solver

HERE = Path(__file__).parent


def made(name):
    @scorer(metrics=[mean()], name=name)
    def one():
        async def score(state, target):
            return Score(value=len(state.output.completion) % 2)
        return score
    return one()


@solver
def counted(stops):
    async def solve(state, generate):
        state = await generate(state)
        with (HERE / "calls").open("a") as file:
            file.write(f"{state.sample_id} {state.epoch}\\n")
        if len((HERE / "calls").read_text().splitlines()) in stops:
            raise RuntimeError("the tool is away")
        return state
    return solve


@task
def changing():
    said = json.loads((HERE / "task.json").read_text())
    samples = [Sample(**each) for each in said["samples"]]
    scorers = [made(name) for name in said["scorers"]]
    return Task(dataset=samples, solver=counted(said["stops"]), scorer=scorers, name="changing")
"""


class World:
    """A task whose samples and scorers stand in a file, and what its runs asked."""

    def __init__(self, folder: Path, run: Callable[..., EvalLog]) -> None:
        self.folder, self._run = folder, run
        self.samples: list[dict[str, Any]] = [
            {"id": f"q{i}", "input": f"Question {i}?", "target": "C"} for i in range(6)
        ]
        self.scorers = ["sc"]
        self.stops = [STOP]
        self.logs = folder / "logs"
        (folder / "task.py").write_text(TASK_FILE)

    def write(self) -> None:
        (self.folder / "task.json").write_text(
            json.dumps({"samples": self.samples, "scorers": self.scorers, "stops": self.stops})
        )

    def first(self, budget: int | str = BUDGET, **arguments: Any) -> EvalLog:
        """A run that ends early, with an error."""
        self.write()
        given = {"task": str(self.folder / "task.py"), "budget": budget, **arguments}
        log = self._run("evalbudget_inspect/budgeted", task_args=given, fail_on_error=True, max_samples=1)
        assert (log.status, self.calls) == ("error", STOP)
        return log

    def again(self, log: EvalLog, **options: Any) -> EvalLog:
        """What the host's eval-retry makes of it, however it ends."""
        self.write()
        given = {**QUIET, "log_dir": str(self.logs), "max_samples": 1, **options}
        (done,) = eval_retry(read_eval_log(log.location), **given)
        return read_eval_log(done.location)

    @property
    def calls(self) -> int:
        path = self.folder / "calls"
        return len(path.read_text().splitlines()) if path.exists() else 0

    def rename_all(self) -> None:
        for sample in self.samples:
            sample["id"] = f"new-{sample['id']}"


@pytest.fixture
def world(tmp_path: Path, run: Callable[..., EvalLog]) -> World:
    return World(tmp_path, run)


def _spent_well(world: World, log: EvalLog) -> None:
    """The budget paid for all calls, earlier ones too, and the log says what became of them."""
    said = entry_of(log)
    assert log.status == "success"
    # what was cut off as another sample failed may have been asked
    assert BUDGET - said["failures"].get(UNANSWERED, 0) <= world.calls <= BUDGET
    assert said["spent"] == BUDGET
    assert said["readings"] + said["failed"] == BUDGET


def test_with_one_sample_fewer_earlier_calls_are_paid(world: World, warnings_of_plugin: list[str]) -> None:
    first = world.first(sampler="uniform")
    del world.samples[2]
    done = world.again(first)
    _spent_well(world, done)
    assert entry_of(done)["failures"][LOST] == STOP
    (said,) = [text for text in warnings_of_plugin if "cannot use" in text]
    assert f"paid for {STOP} answers" in said
    assert "of samples that the task no longer has (q2)" in said
    assert "inspect does not hand back" in said


@pytest.mark.parametrize("sampler", ["eb-bernstein", "sample"])
def test_with_other_ids_earlier_calls_are_paid(
    sampler: str, world: World, warnings_of_plugin: list[str]
) -> None:
    first = world.first(sampler=sampler)
    world.rename_all()
    done = world.again(first)
    _spent_well(world, done)
    assert entry_of(done)["failures"][LOST] == STOP
    assert LOST in " ".join(entry_of(done)["summary"]["text"].split())
    (said,) = [text for text in warnings_of_plugin if "cannot use" in text]
    assert f"{STOP} of samples that the task no longer has (q0, q1, q2, ...)" in said


@pytest.mark.parametrize("renamed", [True, False], ids=["other ids", "one sample fewer"])
def test_what_was_paid_stays_paid_in_later_attempts(renamed: bool, world: World, tmp_path: Path) -> None:
    first = world.first(sampler="uniform")
    if renamed:
        world.rename_all()
    else:
        del world.samples[2]
    world.stops.append(STOP + 4)
    second = world.again(first, log_dir=str(tmp_path / "elsewhere"))
    assert (second.status, world.calls) == ("error", STOP + 4)
    third = world.again(second)
    _spent_well(world, third)
    assert entry_of(third)["failures"][LOST] == STOP
    fourth = world.again(third)
    _spent_well(world, fourth)


def test_once_the_task_is_as_it_was_the_answers_count(world: World) -> None:
    first = world.first(sampler="uniform")
    samples = list(world.samples)
    del world.samples[2]
    world.stops.append(STOP + 4)
    assert world.again(first).status == "error"
    world.samples = samples
    done = world.again(first)
    _spent_well(world, done)
    assert entry_of(done)["failures"][LOST] == 3  # and what failed was tried again


def test_what_earlier_calls_used_up_is_not_asked(world: World) -> None:
    first = world.first(budget=12, sampler="uniform")
    world.rename_all()
    done = world.again(first)
    said = entry_of(done)
    assert (done.status, world.calls, said["spent"], said["readings"]) == ("success", 12, 12, 2)
    refused = [sample for sample in done.samples or [] if is_refused(sample.metadata)]
    assert len(refused) == 4
    assert {sample.metadata["evalbudget"] for sample in refused} == {NOT_PAID}


def test_an_eval_set_pays_for_samples_it_lost(world: World, tmp_path: Path) -> None:
    def whole() -> EvalLog:
        world.write()
        given = {"task": str(world.folder / "task.py"), "budget": BUDGET, "sampler": "uniform"}
        options: dict[str, Any] = {**QUIET, "retry_attempts": 0, "fail_on_error": True, "max_samples": 1}
        entry = "evalbudget_inspect/budgeted"
        (log,) = eval_set(entry, str(world.logs), task_args=given, model="simulated/writer", **options)[1]
        return read_eval_log(log.location)

    assert whole().status == "error"
    del world.samples[2]
    _spent_well(world, whole())
