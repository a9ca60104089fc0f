"""Races in money: one bill for all arms and their judges, below the cap whatever happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import eval_set
from inspect_ai.log import EvalLog, read_eval_log, write_eval_log
from inspect_ai.model import get_model
from tests.bills import changed
from tests.claims import variant
from tests.host_inspect.paid_model import Till, judged_by, paid_model, self_rated, tills
from tests.host_inspect.race_tasks import QUIET, board, quiz, run
from tests.host_inspect.worlds import UNWATCHED

import warm
from evalbudget.cli.main import cli
from evalbudget.prices import Price
from evalbudget.races._summary import closing_lines
from evalbudget_inspect import race
from evalbudget_inspect.host import bill as gate
from evalbudget_inspect.host.refusals import take_refusals
from evalbudget_inspect.providers.simulated import SimulatedJudge

PRICE = Price(input=10.0, output=100.0)
RANGE = "0..10"


@pytest.fixture
def till() -> Iterator[Till]:
    tills["here"] = Till(PRICE)
    yield tills["here"]
    assert not gate._accounts  # a run that has ended is let go


@pytest.fixture
def prices(tmp_path: Path) -> str:
    path = tmp_path / "prices.yaml"
    path.write_text("paid/*: {input: 10, output: 100}\n")
    return str(path)


def _arms(*names: str, **args: Any) -> list[Any]:
    return [paid_model(name, "here", **args) for name in names or ("a", "b", "c")]


def _race(budget: str, *, items: int = 60, scorer: Any = None, **options: Any) -> Any:
    given = {"score_range": RANGE, "sampler": "uniform", **options}
    return race(quiz(items, scorer=scorer or self_rated()), budget=budget, **given)


@pytest.mark.parametrize("at_once", [variant(1), 20])
def test_the_bill_of_all_arms_and_their_judge_is_never_above_the_cap(
    till: Till, prices: str, tmp_path: Path, at_once: int
) -> None:
    latency = 0.002 if at_once == 1 else 0.02  # long enough to overlap on a busy machine
    logs = run(
        _race("$0.25", prices=prices, scorer=judged_by(lambda: get_model(role="grader"))),
        _arms(refuses=0.1, latency=latency),
        tmp_path / "logs",
        model_roles={"grader": _arms("j", refuses=0.1, latency=latency)[0]},
        max_samples=at_once,
        max_connections=at_once,
    )
    assert {log.status for log in logs} == {"success"}
    found = board(logs)
    assert found.stop_reason == "budget used up"
    assert found.unit == "usd"
    assert found.paid == pytest.approx(till.total)
    assert 0.9 * 0.25 <= till.total <= 0.25
    assert sum(standing.paid or 0.0 for standing in found.standings) <= till.total + 1e-9
    assert all(standing.paid for standing in found.standings)
    (paid,) = (note for note in found.notes if note.startswith("Paid "))
    assert "of $0.25: " in paid
    for name in ("a", "b", "c", "j as grader"):
        assert f"paid/{name} $0." in paid
    assert found.spent == sum(standing.readings for standing in found.standings)
    assert {standing.status.value for standing in found.standings} <= {"leads", "possible", "behind", "best"}
    words = " ".join(found.table().split())
    assert "status paid" in words
    assert "Note: Paid $0." in words
    assert found.as_json == json.loads(json.dumps(found.as_json))
    if at_once > 1:
        assert till.peak > 3


def test_tokens_need_no_prices_and_a_race_that_is_over_pays_no_more(till: Till, tmp_path: Path) -> None:
    logs = run(_race("900tok"), _arms(max_tokens=5), tmp_path / "less")
    assert till.tokens == board(logs).paid <= 900
    till.tokens = 0
    logs = run(_race("3Mtok", items=5), _arms(max_tokens=5), tmp_path / "more")
    assert board(logs).spent == board(logs).grid == 15
    assert till.tokens == board(logs).paid < 3e6


def test_samples_of_several_calls_end_in_order_where_the_money_does(
    till: Till, prices: str, tmp_path: Path
) -> None:
    scorer = judged_by(lambda: get_model(role="grader"), calls=3)
    logs = run(
        _race("$0.05", prices=prices, scorer=scorer),
        _arms(latency=0.002),
        tmp_path / "logs",
        model_roles={"grader": _arms("j")[0]},
        max_samples=20,
        limit=40,
    )
    assert {log.status for log in logs} == {"success"}
    found = board(logs)
    assert found.stop_reason == "budget used up"
    assert till.total <= 0.05
    assert found.paid == pytest.approx(till.total)
    assert not any(standing.failed or standing.left for standing in found.standings)
    assert 0.0 < found.wasted <= found.paid
    (spent,) = (line for label, line in closing_lines(found) if label == "Spent")
    assert "paid was for evaluations that were cut off, which have no score." in spent


@pytest.mark.parametrize("at_once", [variant(1), 20])
def test_retries_and_replies_that_never_came_count_at_the_most(
    till: Till, prices: str, tmp_path: Path, at_once: int
) -> None:
    logs = run(
        _race("$0.15", prices=prices, sampler="race"),
        _arms(fails=0.2),
        tmp_path / "logs",
        max_samples=at_once,
        retry_on_error=2,
    )
    found = board(logs)
    assert found.paid is not None
    assert till.total <= found.paid <= 0.15
    assert "of them count at the most that they can cost" in " ".join(found.notes)


def _refusal(logs: list[EvalLog]) -> str:
    assert {log.status for log in logs} == {"error"}
    (refusal,) = {str(ex) for ex in take_refusals()}
    return refusal


def test_what_cannot_be_kept_is_refused_before_the_first_call(
    till: Till, prices: str, tmp_path: Path
) -> None:
    (tmp_path / "two.yaml").write_text("paid/a: {input: 1, output: 2}\n")
    two = str(tmp_path / "two.yaml")
    roles: dict[str, Any] = {"model_roles": {"grader": _arms("also")[0]}}
    said = _refusal(run(_race("$5", prices=two), _arms(), tmp_path / "1", **roles))
    assert "no price is known for paid/also, paid/b, paid/c" in said
    assert "\n  paid/c: {input: ..., output: ...}" in said

    roles = {"model_roles": {"grader": _arms("j", max_tokens=None)[0]}}
    said = _refusal(run(_race("$5", prices=prices), _arms(), tmp_path / "2", **roles))
    assert "nothing limits the length of replies of paid/j" in said

    said = _refusal(run(_race("$0.003", prices=prices), _arms("a", "b"), tmp_path / "3"))
    assert "the budget of $0.0030 is below one call of paid/" in said
    assert not till.paid


def _eval_set(folder: Path, task: Any, models: list[Any], **options: Any) -> list[EvalLog]:
    logs = eval_set(task, str(folder), model=models, **{**QUIET, "retry_attempts": 1, **options})[1]
    return [read_eval_log(log.location) for log in logs]


def _cut_off(logs: list[EvalLog], names: set[str]) -> None:
    """As if the process had died on the way."""
    for log in logs:
        if log.eval.model in names:
            log.status, log.results = "started", None
            log.samples = (log.samples or [])[:4]
            write_eval_log(log)


@pytest.mark.parametrize("names", [variant("abc"), "ac"])
def test_an_unfinished_race_goes_on_with_its_bill(
    till: Till, prices: str, tmp_path: Path, names: str
) -> None:
    first = _eval_set(tmp_path / "logs", _race("$0.06", prices=prices), _arms())
    assert till.total <= 0.06
    (path,) = (tmp_path / "logs").glob(".evalbudget-race-*.bill")
    _cut_off(first, {f"paid/{name}" for name in names})
    with changed(path) as bill:  # a call that the kill cut off
        call = "10000, 0, 'paid/a', '', 'x', 0.01, 0.01, 0.01, NULL, NULL, NULL, 20000"
        bill.execute(f"INSERT INTO paid_calls VALUES ({call})")
    again = _eval_set(tmp_path / "logs", _race("$0.12", prices=prices), _arms())
    assert {log.status for log in again} == {"success"}
    found = board(again)
    assert found.paid == pytest.approx(till.total + 0.01)
    assert 0.09 < found.paid <= 0.12
    assert [path] == list((tmp_path / "logs").glob(".evalbudget-race-*.bill"))


def test_a_race_that_goes_on_needs_its_bill(till: Till, prices: str, tmp_path: Path) -> None:
    first = _eval_set(tmp_path / "logs", _race("$0.05", prices=prices), _arms())
    _cut_off(first, {"paid/a", "paid/b", "paid/c"})
    (path,) = (tmp_path / "logs").glob(".evalbudget-race-*.bill")
    path.unlink()
    paid = till.total
    logs = _eval_set(tmp_path / "logs", _race("$0.2", prices=prices), _arms(), retry_attempts=0)
    assert "the bill of what they paid is not beside them" in _refusal(logs)
    assert till.total == paid


KILLED = """\
from pathlib import Path
import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate
from evalbudget_inspect.providers.simulated import SimulatedJudge

# what the provider bills: a call that is sent, not one that is about to be paid for
sent = SimulatedJudge._sent = getattr(SimulatedJudge, "_sent", SimulatedJudge.generate)

async def billed(self, *given, **named):
    here = Path(__file__).parent
    with (here / "billed").open("a") as bill:
        bill.write(f"{self.model_name}\\n")
    calls = len((here / "billed").read_text().splitlines())
    while calls > 20 and (here / "hold").exists():  # in the middle, until the test has stopped it
        await anyio.sleep(0.01)
    return await sent(self, *given, **named)

SimulatedJudge.generate = billed

@task
def quiz() -> Task:
    half = {"simulated_mean": 0.5}
    samples = [Sample(id=f"item-{i}", input="?", target="C", metadata=half) for i in range(90)]
    return Task(dataset=MemoryDataset(samples), solver=generate(), scorer=match(location="exact"))
"""


@pytest.mark.variant
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_stopped_and_run_again(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("_sent", "generate"):  # the task's file replaces it, in this process, too
        monkeypatch.setattr(SimulatedJudge, name, SimulatedJudge.generate, raising=False)
    file, folder = tmp_path / "quiz.py", tmp_path / "logs"
    file.write_text(KILLED)
    (tmp_path / "p.yaml").write_text("simulated/*: {call: 0.001, max_output: 100}\n")
    evalbudget = "import sys; from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()"
    arguments = [
        *("inspect", "race", "--eval-set", str(file), "--log-dir", str(folder), "--sampler", "uniform"),
        *("--budget", "$0.1", "--prices", str(tmp_path / "p.yaml"), "--json", str(tmp_path / "board.json")),
        *("--model", "simulated/a,simulated/b", "--max-samples", "3", "--log-buffer", "1"),
        *("-M", "bernoulli=true", "-M", "template='{grade}'", "-M", "latency=0.08", "--display", "none"),
        *("-M", f"own={number}"),  # inspect hands out models of the same arguments again
    ]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-c", evalbudget, *arguments]
    hold, billed = tmp_path / "hold", tmp_path / "billed"
    hold.touch()
    process = warm.Popen(command, host="inspect", **quiet)
    while process.poll() is None and (not billed.exists() or len(billed.read_text().splitlines()) < 23):
        time.sleep(0.02)
    os.kill(process.pid, number)
    hold.unlink()
    process.wait(timeout=120)
    assert 23 <= len(billed.read_text().splitlines()) < 100
    done = CliRunner(env=UNWATCHED).invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    calls = len(billed.read_text().splitlines())
    assert 90 <= calls <= 100  # of $0.001 each
    found = json.loads((tmp_path / "board.json").read_text())
    assert found["stop_reason"] == "budget used up"
    assert 0.001 * calls - 1e-9 <= found["paid"] <= 0.1 + 1e-9
    assert sum(each["paid"] for each in found["standings"]) == pytest.approx(0.001 * found["spent"])
    if number == signal.SIGINT:  # it waits for what is under way
        assert found["spent"] == calls == 100
    assert "Paid $0.10 of $0.10" in " ".join(done.output.split())


def test_a_task_that_dies_and_is_tried_again_is_on_the_same_bill(
    till: Till, prices: str, tmp_path: Path
) -> None:
    models = [*_arms("a", "b"), *_arms("dies", fails=0.3)]
    logs = _eval_set(
        tmp_path / "logs", _race("$0.2", prices=prices), models, fail_on_error=True, retry_attempts=2
    )
    assert {log.status for log in logs} == {"success"}
    found = board(logs)
    assert found.paid is not None
    assert till.total <= found.paid <= 0.2
    assert found.of("paid/dies").left is not None
    assert len(list((tmp_path / "logs").glob(".evalbudget-race-*.bill"))) == 1


def test_another_process_cannot_join_the_bill(till: Till, prices: str, tmp_path: Path) -> None:
    first = _eval_set(tmp_path / "logs", _race("$0.05", prices=prices), _arms())
    _cut_off(first, {"paid/a", "paid/b", "paid/c"})
    paid = till.total
    (path,) = (tmp_path / "logs").glob(".evalbudget-race-*.bill")
    code = (
        "import sys; from pathlib import Path; from evalbudget.budget import Budget, Unit\n"
        "from evalbudget.prices import Tariff; from evalbudget.run import bill_on_file\n"
        "bill = bill_on_file(Path(sys.argv[1]), Budget(1.0, Unit.USD), Tariff(Unit.USD, {}))\n"
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        logs = _eval_set(tmp_path / "logs", _race("$0.2", prices=prices), _arms(), retry_attempts=0)
        other.communicate()
    assert "another process" in _refusal(logs)
    assert till.total == paid
