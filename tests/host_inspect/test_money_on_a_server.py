"""What a server bills stays within a budget in money, whatever happens to replies and processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.bills import billed_calls
from tests.host_inspect.paid_server import PRICE_LINE, PaidServer

import warm

ROOT = Path(__file__).parents[2]
BUDGET = 0.05
TASK = f"{ROOT / 'benchmarks' / 'chaos_sections' / 'inspect_tasks.py'}@quiz"


def _env() -> dict[str, str]:
    path = [str(ROOT), str(ROOT / "benchmarks"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}


def test_replies_that_are_lost_garbled_or_refused(tmp_path: Path) -> None:
    script = Path(__file__).with_name("money_runs.py")
    done = warm.run([sys.executable, str(script), str(tmp_path)], host="inspect", env=_env())
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    for name, one in found.items():
        assert one["status"] == "success"
        assert one["billed"] <= one["spent"] <= 0.03, name
        unknown = sum(row["unknown"] for row in one["costs"])
        assert unknown == (1 if name == "hung up" else 2)  # a refusal costs nothing
        lost = sum(row["unknown_cost"] for row in one["costs"])
        assert one["spent"] - one["billed"] <= lost
        assert one["spent"] >= 0.8 * 0.03  # a call costs up to a twelfth of it


def test_killed_and_resumed_it_is_one_bill(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text(PRICE_LINE)
    logs = tmp_path / "logs"
    command = "import sys; from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()"

    def start(*arguments: str) -> warm.Popen:
        return warm.Popen(
            [sys.executable, "-c", command, "inspect", *arguments, "--display", "plain", "--log-buffer", "1"],
            host="inspect",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    killed = threading.Event()

    def hold(body: dict[str, Any]) -> None:
        if server.calls() >= 16:
            killed.wait()

    with PaidServer(latency=0.05, disturb=hold) as server:
        monkeypatch.setenv("HERE_BASE_URL", f"{server.url}/v1")
        monkeypatch.setenv("HERE_API_KEY", "unused")
        run = start(
            *("eval", TASK, "-T", "items=6", "--model", "openai-api/here/m", "--max-tokens", "20"),
            *("--max-samples", "4", "--budget", f"${BUDGET}", "--prices", str(prices)),
            *("--sampler", "uniform", "--log-dir", str(logs)),
        )
        while (server.calls() < 16 or not server.at_once) and run.poll() is None:
            time.sleep(0.01)
        os.kill(run.pid, signal.SIGKILL)
        run.communicate()
        killed.set()
        before = server.cost
        assert 0 < before < BUDGET
        server.latency = 0.0
        (log,) = logs.glob("*.eval")
        again = start("eval-retry", str(log), "--log-dir", str(logs))
        said, _ = again.communicate(timeout=120)
        assert again.returncode == 0, said[-2000:]
        (path,) = logs.glob(".evalbudget-*.bill")
        calls = billed_calls(path)
        spent = sum(call["cost"] for call in calls)
        time.sleep(0.1)  # what was under way at the kill
        assert before < server.cost <= spent <= BUDGET
        assert spent >= 0.9 * BUDGET
        lost = [call for call in calls if call["why"].startswith("under way when the process ended")]
        assert 1 <= len(lost) <= 4
        assert f"of ${BUDGET:.3f}" in said
