"""Killed in the middle: the host's own eval-retry ends at exactly the budget, with nothing asked twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.log._recover._buffer import read_buffer_recovery_data
from tests.claims import is_full, variant
from tests.host_inspect.race_tasks import written
from tests.host_inspect.worlds import COMMAND, entry_of, retried

import evalbudget
import warm
from evalbudget.cli.main import cli
from evalbudget.exit_codes import ExitCode
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.run import UNANSWERED
from evalbudget_inspect.host.not_run import is_refused
from evalbudget_inspect.host.scoring import SHARE

BUDGET = 48
IGNORING = (
    "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    "; from importlib import reload; from evalbudget_inspect.host import interrupts"
    "; reload(interrupts)"  # what is ignored is asked when it is loaded, as it was where we start warm
)


def _judge(**args: Any) -> str:
    return "grader=" + json.dumps({"model": "simulated/judge", "model_args": args})


def _command(folder: Path, *arguments: str) -> list[str]:
    return [*COMMAND, *arguments, "--log-dir", str(folder), "--display", "none", "--log-buffer", "1"]


def _wait_for(process: subprocess.Popen[bytes], folder: Path, samples: int) -> Path:
    """The newest log, as soon as it holds so many samples."""
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.1)
        logs = sorted(folder.glob("*.eval"))
        if logs and written(logs[-1]) >= samples:
            return logs[-1]
    process.kill()
    raise AssertionError(f"no log with {samples} samples; exit code {process.wait()}")


def _kill_when(process: subprocess.Popen[bytes], folder: Path, samples: int) -> EvalLog:
    """Kill -9 as soon as the newest log holds so many samples."""
    log = _wait_for(process, folder, samples)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    killed = read_eval_log(str(log))
    assert killed.status == "started"
    return killed


def _cells(log: EvalLog) -> dict[tuple[str, int], Any]:
    return {
        (str(s.id), s.epoch): s.scores["judge_rating"].value
        for s in log.samples or []
        if s.error is None and s.scores
    }


def _report(location: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["report", location, "--json", "-"])
    return result.exit_code, result.stdout if result.exit_code == 0 else result.output


def test_a_run_killed_twice_ends_at_the_budget(
    task_file: Path,
    tmp_path: Path,
    diagnostics: Any,
    metrics: Any,
    phases: Any,
) -> None:
    folder = tmp_path / "killed"
    command = _command(
        folder,
        "eval",
        str(task_file),
        "--budget",
        str(BUDGET),
        "--model",
        "simulated/writer",
        "--model-role",
        _judge(fail=0.1, latency=0.15, seed=3),  # time to be killed in, also on a busy machine
        "--no-fail-on-error",
        "--max-samples",
        "4",
    )
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    # under nohup, or as a background job of a script, Ctrl-C is ignored; the host's server catches it
    command[2] = f"{IGNORING}; {command[2]}"
    fresh = is_full()
    ignoring = subprocess.Popen(command, **quiet) if fresh else warm.Popen(command, host="inspect", **quiet)
    _wait_for(ignoring, folder, 4)
    ignoring.send_signal(signal.SIGINT)
    first = _kill_when(ignoring, folder, 14)
    process = warm.Popen(_command(folder, "eval-retry", first.location), host="inspect", **quiet)
    log = _kill_when(process, folder, 30)
    buffer = read_buffer_recovery_data(log.location)
    assert buffer is not None
    assert _cells(first).items() <= _cells(log).items()
    done = retried(log, log_dir=str(folder))
    assert done.eval.task == "rating"
    samples_of = [(str(s.id), s.epoch) for s in done.samples or []]
    assert len(samples_of) == len(set(samples_of))
    before, after = _cells(log), _cells(done)
    assert before.items() <= after.items()
    ours = diagnostics(done)
    # a cell that failed is not run again once the budget is used up: it stands in the log and cost nothing
    refused = [s for s in done.samples or [] if is_refused(s.metadata)]
    assert not any(s.model_usage for s in refused)
    attempts = sum(1 + len(s.error_retries or []) for s in done.samples or []) - len(refused)
    begun = BUDGET - attempts  # four at most at each kill: they count as spent
    assert ours["spent"] == BUDGET
    assert 0 < begun <= 8
    assert ours["readings"] == len(after)
    assert ours["failures"][UNANSWERED] == begun
    assert ours["failed"] == sum(ours["failures"].values())
    assert UNANSWERED in " ".join(ours["summary"]["text"].split())
    # readings are of the phases that were logged before the kill, those of cells that it cut off too
    cut_off = [(str(s.id), s.epoch, s.metadata[SHARE]) for s in buffer.in_progress if s.epoch > 1]
    again = [(str(s.id), s.epoch, s.metadata.get(SHARE)) for s in done.samples or []]
    assert cut_off
    assert all(cell in again for cell in cut_off)
    found = phases(done)
    assert phases(log).items() <= found.items()
    assert {0, 1, 2} <= set(found.values())
    items = sorted({item for item, _ in found})
    table = ItemReadings.of(
        [items.index(item) for item, _ in after],
        [epoch - 1 for _, epoch in after],
        list(after.values()),
        phase=[found[key] for key in after],
    )
    assert metrics(done)["estimate"] == pytest.approx(table.item_means.mean(), abs=1e-12)
    (row,) = evalbudget.read(done.location).estimate().rows
    told = [metrics(done)[name] for name in ("estimate", "stderr", "lower", "upper")]
    assert [row.estimate, row.standard_error, row.low, row.high] == pytest.approx(told, abs=1e-12)
    exit_code, output = _report(done.location)
    assert exit_code == 0, output
    (row,) = json.loads(output)["leaderboard"]["rows"]
    (spent,) = json.loads(output)["spent"]["models"]
    assert spent["failed"] == ours["failed"]
    assert row["estimate"] == pytest.approx(metrics(done)["estimate"], abs=1e-12)
    assert row["standard_error"] == pytest.approx(metrics(done)["stderr"], abs=1e-12)


@pytest.mark.parametrize("number", [signal.SIGTERM, variant(signal.SIGINT)])
def test_a_signal_ends_a_retry_as_it_ends_a_run(
    number: signal.Signals, task_file: Path, tmp_path: Path
) -> None:
    folder, said = tmp_path / "logs", tmp_path / "said"
    begin = ["eval", str(task_file), "--budget", "40", "--model", "simulated/writer", "--max-samples", "2"]
    begin += ["--model-role", _judge(latency=0.2)]
    logs: list[EvalLog] = []
    for _ in range(2):
        before = len(logs[0].samples or []) if logs else 0
        with said.open("wb") as told:
            arguments = ["eval-retry", logs[0].location] if logs else begin
            command = _command(folder, *arguments)
            process = warm.Popen(command, host="inspect", stdout=told, stderr=told)
            log = _wait_for(process, folder, before + 2)
            process.send_signal(number)
            code = process.wait()
        assert code == ExitCode.INTERRUPTED, said.read_text()
        assert "Traceback" not in said.read_text()
        assert said.read_text().endswith("Interrupted.\n")
        logs.append(read_eval_log(str(log)))
        assert logs[-1].status == "cancelled"
    assert logs[0].location != logs[1].location


def test_a_retry_after_the_budget_is_used_up_by_errors_spends_nothing(
    task_file: Path, run: Any, tmp_path: Path
) -> None:
    log = run(
        "evalbudget_inspect/budgeted",
        task_args={"task": str(task_file), "budget": 24, "sampler": "uniform"},
        judge={"fail": 0.3, "seed": 1},
        fail_on_error=False,
        epochs=2,
    )
    errors = sum(s.error is not None for s in log.samples)
    assert errors > 0
    assert len(log.samples) == 24
    for _ in range(2):  # default fail_on_error: cells that may not run again do not fail the task
        log.status = "error"
        again = retried(log, fail_on_error=True, retry_on_error=1)
        assert _cells(again) == _cells(log)
        assert len(again.samples or []) == 24
        entry = entry_of(again)
        assert entry["spent"] == 24
        assert entry["failed"] == errors
        log = again
