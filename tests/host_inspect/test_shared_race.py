"""One race whose models run in several processes: the budget is one, every leaderboard is the same."""

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
from inspect_ai.log import list_eval_logs, read_eval_log
from tests.host_inspect.race_tasks import attempts, model, quiz, run
from tests.host_inspect.test_race_resume import TASK_FILE
from tests.host_inspect.worlds import COMMAND, UNWATCHED

import warm
from evalbudget_inspect import race
from postgresql_server import Server

BUDGET = 40
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="kill -9")


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[Any]]]:
    found: list[subprocess.Popen[Any]] = []
    yield found
    for process in found:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stdout.close()


def started(
    folder: Path, store: str, name: str, *more: str, env: dict[str, str] | None = None
) -> subprocess.Popen[Any]:
    """One model in a process of its own."""
    command = [
        *(*COMMAND, "race", str(folder / "quiz.py"), "--model", f"simulated/{name}", "--all-arms", "3"),
        *("--log-dir", str(folder / f"logs-{name}"), "--store", store),
        *("--sampler", "ucb-e", "--batch", "4", "--max-samples", "2", "--json", str(folder / f"{name}.json")),
        *("-M", "bernoulli=true", "-M", "template='{grade}'", "-M", "latency=0.03"),
        *("--display", "none", *(more or ("--budget", str(BUDGET)))),
    ]
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    return warm.Popen(command, host="inspect", env=os.environ | (env or {}), **options)


def bill(folder: Path) -> list[str]:
    path = folder / "bill"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.variant
def test_three_processes_share_a_race(
    postgresql: Server, tmp_path: Path, processes: list[subprocess.Popen[Any]]
) -> None:
    store = f"{postgresql.url}#three"
    (tmp_path / "quiz.py").write_text(TASK_FILE)
    processes += [started(tmp_path, store, name, env=UNWATCHED) for name in "abc"]
    for process in processes:
        told, _ = process.communicate(timeout=120)
        assert process.returncode == 0, told
    boards = [json.loads((tmp_path / f"{name}.json").read_text()) for name in "abc"]
    assert boards[0] == boards[1] == boards[2]
    assert boards[0]["spent"] == len(bill(tmp_path)) == BUDGET
    assert boards[0]["standings"][0]["name"] == "simulated/b"
    assert len(set(bill(tmp_path))) == BUDGET
    logs = [read_eval_log(info) for name in "abc" for info in list_eval_logs(str(tmp_path / f"logs-{name}"))]
    assert [log.status for log in logs] == ["success"] * 3
    assert attempts(logs) == BUDGET


def test_one_of_them_is_killed_and_run_again_in_tokens(
    tmp_path: Path, processes: list[subprocess.Popen[Any]]
) -> None:
    (tmp_path / "quiz.py").write_text(TASK_FILE)
    more = (
        "--eval-set",
        "--all-arms",
        "2",
        "--budget",
        "3500tok",
        "--max-tokens",
        "100",
        "--log-buffer",
        "1",
    )
    store = str(tmp_path / "store.db")
    hold = tmp_path / "hold-b"
    hold.touch()
    processes += [started(tmp_path, store, name, *more) for name in "ab"]
    while sum(line.startswith("b ") for line in bill(tmp_path)) < 12 and processes[1].poll() is None:
        time.sleep(0.02)
    os.kill(processes[1].pid, signal.SIGKILL)
    processes[1].communicate()
    hold.unlink()
    again = started(tmp_path, store, "b", *more)
    processes.append(again)
    for process in (processes[0], again):
        told, _ = process.communicate(timeout=120)
        assert process.returncode == 0, told
    boards = [json.loads((tmp_path / f"{name}.json").read_text()) for name in "ab"]
    assert boards[0] == boards[1]
    used = 110 * len(bill(tmp_path))  # tokens, as the provider counts; of the two cut off some were not sent
    assert max(2600, used - 2 * 110) <= boards[0]["paid"] <= 3500


def test_a_task_in_python_and_a_worker_of_an_eval_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INSPECT_EVAL_SET_SELECTION", str(tmp_path / "selection.json"))
    raced = race(quiz(8), budget=12, store=tmp_path / "store.db", all_arms=2)
    monkeypatch.delenv("INSPECT_EVAL_SET_SELECTION")
    logs = run(raced, [model("a", 0.2), model("b", 0.9)], tmp_path / "logs")
    assert attempts(logs) == 12


def test_a_store_of_another_race_is_refused(tmp_path: Path) -> None:
    def once(budget: int) -> list[Any]:
        raced = race(quiz(8), budget=budget, store=tmp_path / "store.db", all_arms=2)
        return run(raced, [model("a", 0.2), model("b", 0.9)], tmp_path / f"logs{budget}")

    once(12)
    logs = once(13)
    assert {log.status for log in logs} == {"error"}
    assert "budget = '12' there, '13' here" in logs[0].error.message
