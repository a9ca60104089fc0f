"""Killed, interrupted or extended races: the same command again ends at exactly the budget."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai import Task, eval_retry, eval_set
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import (
    EvalLog,
    ProvenanceData,
    invalidate_samples,
    list_eval_logs,
    read_eval_log,
    write_eval_log,
)
from tests.claims import is_full, variant
from tests.host_inspect.race_tasks import QUIET, attempts, board, cells, model, quiz, run, three, written
from tests.host_inspect.worlds import COMMAND, UNWATCHED, book_says

import warm
from evalbudget.cli.main import cli
from evalbudget.errors import InvalidInputError
from evalbudget.races import RaceConfig
from evalbudget_inspect import race
from evalbudget_inspect.host.refusals import take_refusals
from evalbudget_inspect.host.rewrite import tasks_among
from evalbudget_inspect.races.direction import refuse_other_direction

BUDGET, ITEMS = 45, 18  # of three models: 83% of the grid
SPENT = 36  # of runs in this process
TASK_FILE = f"""\
from pathlib import Path
import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate, solver

@solver
def billed():
    async def solve(state, generate):
        here, own = Path(__file__).parent, state.model.name
        with (here / "bill").open("a") as bill:  # what the provider would have billed
            bill.write(f"{{own}} {{state.sample_id}}\\n")
        calls = sum(line.startswith(f"{{own}} ") for line in (here / "bill").read_text().splitlines())
        while calls > 10 and (here / f"hold-{{own}}").exists():  # in the middle, until a test has stopped it
            await anyio.sleep(0.01)
        return await generate(state)

    return solve

@task
def quiz(items: int = {ITEMS}) -> Task:
    chance = {{"a": 0.2, "b": 0.9, "c": 0.5}}
    samples = [
        Sample(id=f"item-{{i}}", input="?", target="C", metadata={{"simulated_mean": chance}})
        for i in range(items)
    ]
    return Task(dataset=MemoryDataset(samples), solver=billed(), scorer=match(location="exact"))
"""


def _command(file: Path, folder: Path, *arguments: str) -> list[str]:
    return [
        *(*COMMAND, "race", "--eval-set", str(file), "--log-dir", str(folder), "--budget", str(BUDGET)),
        *("--model", "simulated/a,simulated/b,simulated/c"),
        *("-M", "bernoulli=true", "-M", "template='{grade}'", "--display", "none", "--log-buffer", "1"),
        *arguments,
    ]


def _read(folder: Path) -> list[EvalLog]:
    """The newest log of each model."""
    found: dict[str, EvalLog] = {}
    for info in list_eval_logs(str(folder), descending=False):
        try:
            log = read_eval_log(info)
        except Exception:  # it is being written
            continue
        found[log.eval.model] = log
    return list(found.values())


def _signal_at(process: subprocess.Popen[bytes], folder: Path, samples: int, number: int) -> list[EvalLog]:
    """Send the signal as soon as the logs hold so many samples; the logs when the process has ended."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
        if sum(map(written, folder.glob("*.eval"))) >= samples:
            os.kill(process.pid, number)
            process.wait(timeout=120)
            return _read(folder)
    process.kill()
    raise AssertionError(f"no logs with {samples} samples; exit code {process.wait()}")


def _uuids(logs: list[EvalLog]) -> set[str | None]:
    return {s.uuid for log in logs for s in log.samples or [] if s.error is None}


@pytest.mark.parametrize(
    ("number", "status", "fail"), [(signal.SIGKILL, "started", 0.0), variant(signal.SIGINT, "cancelled", 0.1)]
)
def test_stopped_and_run_again(number: int, status: str, fail: float, tmp_path: Path) -> None:
    file, folder = tmp_path / "quiz.py", tmp_path / "logs"
    file.write_text(TASK_FILE)
    command = _command(
        *(file, folder, "--sampler", "ucb-e", "--batch", "8", "--max-samples", "3"),
        *("-M", "latency=0.2", "-M", f"fail={fail}"),  # time to be stopped in, also on a busy machine
    )
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    fresh = number == signal.SIGINT and is_full()
    process = subprocess.Popen(command, **quiet) if fresh else warm.Popen(command, host="inspect", **quiet)
    before = _signal_at(process, folder, 18, number)
    assert {log.status for log in before} == {status}
    assert 18 <= attempts(before) < BUDGET
    done = CliRunner(env=UNWATCHED).invoke(cli, command[3:])
    assert done.exit_code == 0, done.output
    logs = _read(folder)
    assert {log.status for log in logs} == {"success"}
    bill = (tmp_path / "bill").read_text().splitlines()
    begun = BUDGET - attempts(logs)  # samples under way count as spent, whatever became of their calls
    assert board(logs).spent == BUDGET
    assert begun in (range(10) if number == signal.SIGKILL else [0])  # Ctrl-C waits for them
    assert attempts(logs) <= len(bill) <= BUDGET
    assert _uuids(before) <= _uuids(logs)  # what was read is kept, and not asked again
    for keys in cells(logs).values():
        assert len(keys) == len(set(keys))
    words = " ".join(done.stdout.split())
    grid = 3 * ITEMS
    assert f"{BUDGET} evaluations; 83% of the whole grid of {grid} (3 models x {ITEMS} items)" in words
    if not fail:  # the same decisions as if nobody had killed it
        args = {"task": str(file), "budget": BUDGET, "sampler": "ucb-e", "evalbudget.batch": 8}
        models = [f"simulated/{name}" for name in "abc"]
        made = {"bernoulli": True, "template": "{grade}"}
        whole = run("evalbudget_inspect/race", models, tmp_path / "whole", task_args=args, model_args=made)
        assert all(set(own) <= set(cells(whole)[name]) for name, own in cells(logs).items())


@pytest.mark.variant
def test_killed_twice_under_a_limit_pays_nothing_twice(tmp_path: Path) -> None:
    file, folder = tmp_path / "quiz.py", tmp_path / "logs"
    file.write_text(TASK_FILE)
    command = _command(
        *(file, folder, "--sampler", "ucb-e", "--batch", "8", "--max-samples", "2", "--limit", "15"),
        *("-M", "latency=0.1"),
    )
    start: dict[str, Any] = {"host": "inspect", "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = warm.Popen(command, **start)
    before = _signal_at(process, folder, 20, signal.SIGKILL)
    bill = tmp_path / "bill"
    process = warm.Popen(command, **start)
    paid = len(bill.read_text().splitlines())
    deadline = time.monotonic() + 120
    while len(bill.read_text().splitlines()) < paid + 6 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)  # under --limit its logs hold little of what the first ones do
    process.wait()
    done = CliRunner(env=UNWATCHED).invoke(cli, command[3:])
    assert done.exit_code == 0, done.output
    logs = _read(folder)
    assert _uuids(before) <= _uuids(logs)
    assert board(logs).spent == BUDGET
    assert attempts(logs) <= len(bill.read_text().splitlines()) <= BUDGET


def _eval_set(
    folder: Path, models: Any, budget: int = SPENT, *, task: Task | None = None, **options: Any
) -> list[EvalLog]:
    given = {**QUIET, "retry_attempts": 1, **options}
    logs = eval_set(
        race(task or quiz(18), budget=budget, sampler="ucb-e", batch=4), str(folder), model=models, **given
    )[1]
    return [read_eval_log(log.location) for log in logs]


def _unfinished(
    logs: list[EvalLog], names: str, status: Any = "started", samples: int = 999, *, more: int = 0
) -> None:
    """As if the process had died while the logs of these models were closed, or after so many samples.

    ``more``: what it had paid that no log has.
    """
    for log in logs:
        if log.eval.model[-1] in names:
            log.status = status
            log.samples = (log.samples or [])[:samples]
            log.results = None
            write_eval_log(log)
    book_says(logs[0], attempts(logs) + more)


@pytest.mark.parametrize("late", [variant(""), "d"], ids=["the same models", "one more"])
def test_a_race_that_is_over_is_not_run_again(tmp_path: Path, late: str) -> None:
    first = _eval_set(tmp_path, three())
    # all of the budget is used up: a model added later can only be listed
    again = _eval_set(tmp_path, [*three(), *(model(name, 0.99) for name in late)])
    assert _uuids(first) == _uuids(again)
    assert attempts(again) == SPENT


@pytest.mark.parametrize("open_logs", ["ac", variant("b")], ids=["two logs", "the last log"])
def test_killed_while_the_logs_were_closed(tmp_path: Path, open_logs: str) -> None:
    first = _eval_set(tmp_path, three())
    ranks = {s.name: s.rank for s in board(first).standings}
    _unfinished(first, open_logs)
    again = _eval_set(tmp_path, three())
    assert {log.status for log in again} == {"success"}
    assert _uuids(first) == _uuids(again)
    assert {s.name: s.rank for s in board(again).standings} == ranks
    assert board(again).spent == SPENT


def test_killed_while_the_host_copied_a_killed_log(tmp_path: Path) -> None:
    first = _eval_set(tmp_path, three())
    kept = _uuids(first)
    _unfinished(first, "abc")
    for log in first:  # the host's copy of a killed log is the newest log, and the host writes it bit by bit
        log.samples = (log.samples or [])[:3]
        write_eval_log(log, log.location.replace(".eval", "-recovered.eval"))
    again = _eval_set(tmp_path, three())
    assert _uuids(again) == kept
    assert {log.status for log in again} == {"success"}
    assert board(again).spent == SPENT


@pytest.mark.parametrize("names", ["abc", "ac"], ids=["all are cut short", "a model's task has ended"])
def test_what_a_killed_run_had_begun_counts(names: str, tmp_path: Path) -> None:
    first = _eval_set(tmp_path, three(), max_samples=2)
    _unfinished(first, names, samples=8, more=3)
    again = _eval_set(tmp_path, three(), max_samples=2)
    assert board(again).spent == SPENT
    assert attempts(again) == SPENT - 3


def test_a_killed_race_whose_book_is_gone_goes_on_with_what_its_logs_have(tmp_path: Path) -> None:
    first = _eval_set(tmp_path, three())
    _unfinished(first, "abc", samples=8, more=3)
    for path in tmp_path.glob(".evalbudget-*"):
        path.unlink()
    again = _eval_set(tmp_path, three())
    assert attempts(again) == board(again).spent == SPENT


def test_a_model_added_to_an_unfinished_race(tmp_path: Path) -> None:
    first = _eval_set(tmp_path, three())
    _unfinished(first, "abc", "cancelled", samples=8)  # between two samples
    kept = _uuids(first)
    again = _eval_set(tmp_path, [*three(), model("d", 0.99)])
    assert attempts(again) == board(again).spent == SPENT
    assert board(again).of("simulated/d").readings >= 4
    assert kept <= _uuids(again)


def test_answers_to_items_that_are_gone_stay_paid_and_are_said(
    tmp_path: Path, warnings_of_plugin: list[str]
) -> None:
    first = _eval_set(tmp_path, three(), 30)
    _unfinished(first, "abc", "cancelled", samples=8)
    items = {f"item-{i}" for i in range(10)}
    gone = sum(sample.id not in items for log in first for sample in log.samples or [])
    assert gone > 1
    for _ in range(2):
        again = _eval_set(tmp_path, three(), 30, task=quiz(10))
        assert board(again).spent == 30
        assert attempts(again) == 30 - gone
        _unfinished(again, "abc", "cancelled", samples=6, more=gone)
    assert sum("samples that the task no longer has" in text for text in warnings_of_plugin) in range(1, 4)


def test_answers_that_are_marked_as_invalid_stay_paid(tmp_path: Path) -> None:
    first = _eval_set(tmp_path, three())
    names = [str(sample.uuid) for sample in first[0].samples or []][:3]
    write_eval_log(invalidate_samples(first[0], names, ProvenanceData(author="me")), first[0].location)
    again = _eval_set(tmp_path, three())
    assert board(again).spent == SPENT
    assert _uuids(again) == _uuids(first) - set(names)  # nothing is left to ask them again


@pytest.mark.parametrize("unfinished", [variant("abc"), "a"])
def test_answers_to_other_questions_are_not_pooled(unfinished: str, tmp_path: Path) -> None:
    first = _eval_set(tmp_path, three())
    _unfinished(first, unfinished, "cancelled", samples=8)
    asked = attempts(_read(tmp_path))
    edited = quiz(18)
    for sample in edited.dataset:
        if sample.id == first[1].samples[0].id:  # type: ignore[index]
            sample.input = "Something else?"
    again = _eval_set(tmp_path, three(), task=edited, retry_attempts=0)
    assert attempts(again) <= asked
    (reason,) = {str(refusal) for refusal in take_refusals()}
    assert "that earlier attempts answered ask something else now" in reason


@pytest.mark.parametrize("lower", [False, True])
def test_a_race_in_python_says_that_the_direction_differs(
    lower: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def started(folder: str, *, lower_is_better: bool) -> None:
        raced = race(quiz(6), budget=12, sampler="uniform", lower_is_better=lower_is_better)
        eval_set(raced, log_dir=f"{tmp_path / folder}", model=list(three()), retry_attempts=0, **QUIET)

    started("one", lower_is_better=not lower)
    with pytest.raises(PrerequisiteError, match="is not associated with a task"):
        started("one", lower_is_better=lower)
    before, now = ("highest", "lowest") if lower else ("lowest", "highest")
    assert f"one has a race for the {before} score, and this one is for the {now}: give it " in caplog.text
    assert f"lower_is_better={not lower} to go on with it" in caplog.text
    caplog.clear()
    started("two", lower_is_better=lower)
    started("two", lower_is_better=lower)
    assert "race for the" not in caplog.text


def test_a_race_for_the_lowest_score_goes_on_as_one(tmp_path: Path) -> None:
    file, folder = tmp_path / "quiz.py", tmp_path / "logs"
    file.write_text(TASK_FILE)
    command = _command(file, folder, "--sampler", "ucb-e", "--batch", "8", "--lower-is-better")[3:]
    assert CliRunner(env=UNWATCHED).invoke(cli, command).exit_code == 0
    whole = _read(folder)
    _unfinished(whole, "abc", "cancelled", samples=6)
    before = _read(folder)
    other = CliRunner(env=UNWATCHED).invoke(cli, command[:-1])
    assert other.exit_code == 2
    assert "a race for the lowest score, and this one is for the highest" in " ".join(other.output.split())
    assert _uuids(_read(folder)) == _uuids(before)
    (folder / "2026-01-01T00-00-00+00-00_quiz_cut.eval").write_bytes(b"PK cut off")
    highest = {"sampler": "ucb-e", "budget": BUDGET}
    here = tasks_among([f"{file}"])
    for tasks, score in ((["other.py"], None), (here, "match")):  # nothing to go on with
        refuse_other_direction(f"{folder}", tasks, RaceConfig.of(score=score, **highest))
    with pytest.raises(InvalidInputError, match="--lower-is-better to go on with it"):
        refuse_other_direction(f"{folder}", here, RaceConfig.of(**highest))
    (folder / "2026-01-01T00-00-00+00-00_quiz_cut.eval").unlink()
    assert CliRunner(env=UNWATCHED).invoke(cli, command).exit_code == 0
    logs = _read(folder)
    found = board(logs)
    assert _uuids(before) <= _uuids(logs)
    assert (found.spent, found.lower_is_better) == (BUDGET, True)
    assert found.leader.name == "simulated/a"
    for log in logs:
        values = [float(s.scores["match"].value == "C") for s in log.samples or [] if s.scores]
        standing = found.of(log.eval.model)
        assert standing.all_lower <= standing.estimate <= standing.all_upper  # type: ignore[operator]
        if len(values) == ITEMS:
            assert standing.estimate == pytest.approx(sum(values) / ITEMS)


def test_a_task_that_dies_is_retried_and_keeps_what_it_bought(tmp_path: Path) -> None:
    models = [model("a", 0.3), model("b", 0.9), model("dies", 0.5, fail=0.4)]
    logs = _eval_set(tmp_path, models, fail_on_error=True, retry_attempts=2)
    assert {log.status for log in logs} == {"success"}
    assert board(logs).spent <= SPENT
    dead = next(log for log in logs if log.eval.model == "simulated/dies")
    assert board(logs).of("simulated/dies").left is not None
    assert dead.samples


def test_one_log_of_a_race_cannot_be_retried_alone(tmp_path: Path) -> None:
    file = tmp_path / "quiz.py"
    file.write_text(TASK_FILE)
    args = {"task": str(file), "budget": SPENT, "sampler": "ucb-e", "evalbudget.batch": 4}
    models = [f"simulated/{name}" for name in "abc"]
    made = {"bernoulli": True, "template": "{grade}"}
    logs = run("evalbudget_inspect/race", models, tmp_path, task_args=args, model_args=made)
    assert attempts(logs) == SPENT
    _unfinished(logs, "a")
    retried = eval_retry(logs[0], log_dir=str(tmp_path), **QUIET)[0]
    assert retried.status == "error"
    (refusal,) = {str(ex) for ex in take_refusals()}
    assert "one arm of a race" in refusal
    assert "eval-set" in refusal
