"""An eval set that is spread over workers, as the host's own runners start them, one task each."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import pytest
from click.testing import CliRunner
from inspect_ai import Task, eval_set
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log, write_eval_log
from inspect_ai.solver import Generate, Solver, TaskState, solver
from tests.bills import cut_to
from tests.claims import variant
from tests.host_inspect.race_tasks import QUIET, attempts, model, quiz, run
from tests.host_inspect.test_race_resume import TASK_FILE
from tests.host_inspect.worlds import COMMAND, book_says, entry_of

import warm
from evalbudget.cli.main import cli
from evalbudget.errors import InvalidInputError
from evalbudget_inspect import budgeted, gate
from evalbudget_inspect.host import spread
from evalbudget_inspect.host.refusals import take_refusals
from evalbudget_inspect.races.all_races import take_gates

BUDGET, ITEMS = 24, 6
CAPTURE = "INSPECT_EVAL_SET_CAPTURE"
PRICES = "simulated/*: {call: 0.001, input: 0, output: 0, max_output: 100}\n"
Make = Callable[[], Task]


class Runner:
    """What an external runner does: it enumerates the tasks of an eval set, and starts a worker for each."""

    def __init__(
        self,
        folder: Path,
        make: Make,
        monkeypatch: pytest.MonkeyPatch,
        *,
        logs: Path | str | None = None,
        names: str = "ab",
    ) -> None:
        self.folder, self.logs = folder, logs or folder / "logs"
        self._make, self._patch, self._names = make, monkeypatch, names
        with monkeypatch.context() as patch:
            patch.setenv(CAPTURE, str(folder / "tasks.json"))
            with pytest.raises(SystemExit):
                self._eval_set(self.logs)
        self.tasks = identifiers(folder / "tasks.json")

    def worker(self, task: int, resume: EvalLog | None = None, logs: Path | None = None) -> EvalLog:
        """The log of a worker, to its end."""
        document = self.folder / f"{task}.json"
        select(document, self.tasks[task], None if resume is None else resume.location)
        with self._patch.context() as patch:
            patch.setenv(spread.VARIABLE, str(document))
            (log,) = self._eval_set(logs or self.logs)
        return read_eval_log(log.location)

    def _eval_set(self, logs: Path | str) -> list[EvalLog]:
        models = [model(name, mean) for name, mean in zip(self._names, (0.2, 0.9), strict=True)]
        return eval_set(self._make(), str(logs), model=models, **QUIET)[1]


def identifiers(manifest: Path) -> list[str]:
    return [task["identifier"] for task in json.loads(manifest.read_text())["tasks"]]


def select(document: Path, identifier: str, resume: str | None) -> None:
    task = {"identifier": identifier} | ({} if resume is None else {"resume": resume})
    document.write_text(json.dumps({"version": 1, "eval_set_id": "set", "tasks": [task]}))


def cut_off(log: EvalLog, samples: int, status: Any = "error", *, in_money: bool = False) -> EvalLog:
    """As if the worker had ended after so many samples; with ``started`` it was killed."""
    log.status, log.results = status, None
    log.samples = (log.samples or [])[:samples]
    write_eval_log(log)
    if not in_money:
        book_says(log, samples)
    return log


def uuids(*logs: EvalLog) -> set[str | None]:
    return {sample.uuid for log in logs for sample in log.samples or []}


def scored() -> Task:
    return budgeted(quiz(ITEMS), budget=BUDGET, sampler="uniform")


@pytest.mark.parametrize("named", [True, variant(False)], ids=["resume", "no resume"])
def test_a_worker_goes_on_from_what_was_bought(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = Runner(tmp_path, scored, monkeypatch)
    first, other = runner.worker(0), cut_off(runner.worker(1), 7, "started")
    untouched = Path(other.location).read_bytes()
    cut_off(first, 10)
    second = cut_off(runner.worker(0, first if named else None), 15)
    assert uuids(first) < uuids(second)
    third = runner.worker(0, second if named else None)
    assert (third.status, entry_of(third)["spent"], attempts([third])) == ("success", BUDGET, BUDGET)
    assert uuids(second) <= uuids(third)
    assert {log.eval.task_id for log in (first, second)} == {third.eval.task_id} != {other.eval.task_id}
    assert Path(other.location).read_bytes() == untouched  # it is of a worker that may be running


@pytest.mark.parametrize(("log_format", "logs"), [("json", "memory://spread")])
def test_what_only_an_older_log_holds_is_not_bought_again(
    log_format: str, logs: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(QUIET, "log_format", log_format)
    runner = Runner(tmp_path, scored, monkeypatch, logs=logs)
    first = cut_off(runner.worker(0), 10)
    second = cut_off(runner.worker(0, first), 3)  # it ended as the samples of the first were handed back
    third = cut_off(runner.worker(0, second), 12)
    assert uuids(first) <= uuids(third)
    fourth = runner.worker(0, first)  # whichever is named
    assert uuids(third) <= uuids(fourth)
    assert (entry_of(fourth)["spent"], attempts([fourth])) == (BUDGET, BUDGET)


@pytest.mark.parametrize("named", [True, variant(False)], ids=["the oldest log", "no log"])
def test_retries_of_failed_samples_are_kept(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"fails": True, "calls": 0}

    @solver
    def flaky() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state = await generate(state)
            asked["calls"] += 1
            if asked["fails"] and asked["calls"] % 3 == 0:
                raise RuntimeError("the tool is away")
            return state

        return solve

    def half() -> Task:
        return budgeted(quiz(ITEMS, solver=flaky()), budget=BUDGET, sampler="uniform")

    def answered(log: EvalLog) -> set[str | None]:
        return {sample.uuid for sample in log.samples or [] if sample.error is None}

    runner = Runner(tmp_path, half, monkeypatch)
    first = runner.worker(0)
    assert (first.status, len(answered(first))) == ("success", BUDGET * 2 // 3)
    asked["fails"] = False
    second = cut_off(runner.worker(0, first), 3)  # it ended as samples were handed back
    assert len(answered(second)) < len(answered(first))
    third = runner.worker(0, first if named else None)
    assert answered(first) <= answered(third)
    fourth = runner.worker(0, first if named else None)
    assert (answered(third) <= answered(fourth), fourth.status) == (True, "success")
    assert asked["calls"] <= BUDGET * 4 // 3  # each failure once more, at most


@pytest.mark.parametrize("named", [variant(True), False], ids=["resume", "no resume"])
def test_the_bill_goes_on_too(named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prices.yaml").write_text(PRICES)

    def paid() -> Task:
        task = quiz(ITEMS)
        return budgeted(task, budget="$0.024", prices=str(tmp_path / "prices.yaml"), sampler="uniform")

    runner = Runner(tmp_path, paid, monkeypatch)
    (tmp_path / "prices.yaml").write_text(PRICES.replace("simulated", "other"))
    unpriced = runner.worker(0)
    assert not list(tmp_path.glob("logs/.evalbudget-*.bill"))
    take_refusals()
    (tmp_path / "prices.yaml").write_text(PRICES)
    first = cut_off(runner.worker(0, unpriced if named else None), 10, in_money=True)
    (bill,) = tmp_path.glob("logs/.evalbudget-*.bill")
    cut_to(bill, 10)  # it paid for ten
    second = cut_off(runner.worker(0, first if named else None), 15, in_money=True)
    assert uuids(first) < uuids(second)
    third = runner.worker(0, second if named else None)  # it paid for all, and five of these answers are lost
    assert len(uuids(third)) == 15
    assert entry_of(third)["spent"] == pytest.approx(0.024)
    assert len(list(tmp_path.glob("logs/.evalbudget-*.bill"))) == 1


def test_a_bill_follows_from_folder_to_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prices.yaml").write_text(PRICES)
    here, there = tmp_path / "here", tmp_path / "there"

    def paid() -> Task:
        return budgeted(quiz(ITEMS), budget="$0.024", prices=str(tmp_path / "prices.yaml"), sampler="uniform")

    runner = Runner(tmp_path, paid, monkeypatch)
    first = cut_off(runner.worker(0, logs=here), 10, in_money=True)
    (bill,) = here.glob(".evalbudget-*.bill")
    cut_to(bill, 10)
    second = cut_off(runner.worker(0, first, logs=there), 15, in_money=True)
    third = runner.worker(0, second, logs=here)  # whose bill is older
    assert (len(uuids(third)), entry_of(third)["spent"]) == (15, pytest.approx(0.024))


@pytest.mark.parametrize("named", [True, variant(False)], ids=["resume", "no resume"])
def test_what_cannot_be_read_is_not_bought_again(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = Runner(tmp_path, scored, monkeypatch)
    first = cut_off(runner.worker(0), 10)
    path = Path(first.location)
    whole = path.read_bytes()
    path.write_bytes(b"PK")
    refused = runner.worker(0)
    assert refused.error is not None
    assert f"{path.name} is no log" in refused.error.message
    assert "Repair that log, or begin anew in another folder" in refused.error.message
    assert not any(sample.model_usage for sample in refused.samples or [])
    path.write_bytes(whole)
    (tmp_path / "logs" / "2026-01-01T00-00-00+00-00_other_zzz.eval").write_bytes(b"PK")  # of another task
    second = runner.worker(0, refused if named else None)
    assert (uuids(first) < uuids(second), attempts([second])) == (True, BUDGET)
    monkeypatch.setattr(spread, "held_as", lambda name, kind: None)
    assert "inspect does not say which tasks this worker runs" in str(runner.worker(1).error)
    take_refusals()


def test_the_log_that_is_named_is_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(tmp_path, scored, monkeypatch)
    older = cut_off(runner.worker(0), 4)
    other = cut_off(runner.worker(0, logs=tmp_path / "there"), 20)
    third = runner.worker(0, other)
    assert (uuids(other) <= uuids(third), uuids(older) & uuids(third)) == (True, set())


def test_each_candidate_has_a_gate_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prices.yaml").write_text(PRICES)
    run(quiz(60), model("old", 0.95), tmp_path / "old")

    def judged() -> Task:
        return gate(
            quiz(60),
            baseline=tmp_path / "old",
            margin=0.1,
            budget="$0.05",
            prices=str(tmp_path / "prices.yaml"),
            seed=0,
        )

    runner = Runner(tmp_path, judged, monkeypatch, names="aa")  # of one name, with other arguments
    take_gates()
    first = runner.worker(0)
    cut_off(runner.worker(1), 4)
    second = runner.worker(1)  # its bill, of 50, is its own and goes on
    assert len(uuids(second)) == 4
    assert [each.exit_code for each in take_gates()] == [1, 3, 3]
    assert entry_of(first, "gate")["race_id"] != entry_of(second, "gate")["race_id"]


def test_a_gate_that_asks_its_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(spread.VARIABLE, "selection.json")
    with pytest.raises(
        InvalidInputError, match=r"spread over several .*--baseline-model a .*--baseline, a log"
    ):
        gate(quiz(), baseline_model="a", margin=0.1)


@pytest.mark.variant
@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_workers_side_by_side_one_killed(tmp_path: Path) -> None:
    file, logs, bill = tmp_path / "quiz.py", tmp_path / "logs", tmp_path / "bill"
    file.write_text(TASK_FILE)
    command = [
        *(*COMMAND, "eval-set", str(file), "--model", "simulated/a,simulated/b", "--log-dir", str(logs)),
        *("--budget", "60", "-M", "bernoulli=true", "-M", "template='{grade}'", "-M", "latency=0.05"),
        *("--max-samples", "3", "--log-buffer", "1", "--display", "none"),
    ]
    enumerated = CliRunner().invoke(cli, command[3:], env={CAPTURE: str(tmp_path / "tasks.json")})
    assert enumerated.exit_code == 0, enumerated.output
    tasks = identifiers(tmp_path / "tasks.json")

    def begun(task: int) -> subprocess.Popen[Any]:
        document = tmp_path / f"{task}.json"
        select(document, tasks[task], None)
        with (tmp_path / "told").open("a") as told:
            quiet: dict[str, Any] = {"stdout": told, "stderr": subprocess.STDOUT}
            environment = os.environ | {spread.VARIABLE: str(document)}
            return warm.Popen(command, host="inspect", env=environment, **quiet)

    def paid(name: str) -> int:
        lines = bill.read_text().splitlines() if bill.exists() else []
        return sum(line.startswith(f"{name} ") for line in lines)

    hold = tmp_path / "hold-a"
    hold.touch()
    killed, other = begun(0), begun(1)
    while paid("a") < 13 and killed.poll() is None:
        time.sleep(0.02)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    hold.unlink()
    (before,) = (log for log in _whole(logs) if log.eval.model[-1] == "a")
    assert (begun(0).wait(120), other.wait(120)) == (0, 0), (tmp_path / "told").read_text()
    a, b = sorted(_ended(logs), key=lambda log: log.eval.model)
    assert before.status == "started"
    assert uuids(before) < uuids(a)
    assert (entry_of(a)["spent"], entry_of(b)["spent"]) == (30, 30)
    assert attempts([a]) <= paid("a") <= 30  # what was cut off counts as spent
    assert attempts([b]) == paid("b") == 30


def _ended(logs: Path) -> list[EvalLog]:
    return [log for log in map(read_eval_log, list_eval_logs(str(logs))) if log.status == "success"]


def _whole(logs: Path) -> list[EvalLog]:
    """All logs of a folder in which a process is writing: a look may find one half written."""
    while True:
        try:
            return [read_eval_log(info) for info in list_eval_logs(str(logs))]
        except (ValueError, EOFError, BadZipFile):
            time.sleep(0.02)
