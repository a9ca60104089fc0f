"""The command line: what is printed, written and passed on; settings that race each other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log
from tests.host_inspect.race_tasks import attempts, board, run

from evalbudget_inspect.racing.command import leaderboard_command

EVALBUDGET = "import sys; from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()"
QUIZ = Path(__file__).parents[2] / "examples" / "race_quiz.py"
MODELS = ("--model", "simulated/alder,simulated/elm,simulated/ginkgo", "-M", "bernoulli=true")


def _command(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={name: value for name, value in os.environ.items() if name != "INSPECT_DISPLAY"},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )


def _logs(folder: Path) -> list[EvalLog]:
    return [read_eval_log(info) for info in list_eval_logs(str(folder))]


def _cells(logs: list[EvalLog]) -> Any:
    return {
        (log.eval.task, log.eval.model): sorted((s.id, s.epoch) for s in log.samples or []) for log in logs
    }


def test_by_flag_and_by_registry(tmp_path: Path) -> None:
    flag, entry = tmp_path / "flag", tmp_path / "entry"
    common = [*MODELS, "--limit", "60", "--display", "none"]
    done = _command(
        EVALBUDGET,
        *("inspect", "eval", str(QUIZ), "--sampler", "ucb-e", "--batch", "8", "--budget", "90"),
        *("--json", str(tmp_path / "board.json"), "--log-dir", str(flag), *common),
    )
    assert done.returncode == 0, done.stderr
    assert "+ inspect eval evalbudget_inspect/race -T" in done.stderr
    native = run(
        "evalbudget_inspect/race",
        MODELS[1].split(","),
        entry,
        task_args={"task": str(QUIZ), "budget": 90, "sampler": "ucb-e", "evalbudget.batch": 8},
        model_args={"bernoulli": True},
        limit=60,
    )
    assert attempts(_logs(flag)) == 90
    assert _cells(_logs(flag)) == _cells(native)
    found = json.loads((tmp_path / "board.json").read_text())
    assert found == json.loads(json.dumps(board(_logs(flag)).as_json))
    assert found["spent"] == 90
    words = " ".join(done.stdout.split())
    assert "90 of the budget of 90 evaluations; 50% of the whole grid of 180 (3 models x 60 items)" in words
    assert found["sentence"] in words
    for name in ("alder", "elm", "ginkgo"):
        assert f"simulated/{name}" in done.stdout
    again = CliRunner().invoke(leaderboard_command, [str(entry)])
    assert again.exit_code == 0
    assert found["sentence"] in " ".join(again.output.split())


def test_settings_by_flag(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    done = _command(
        EVALBUDGET,
        *("inspect", "race", str(QUIZ), "--sampler", "uniform", "--budget", "80", "--limit", "40"),
        *(
            "--arm",
            "prompt=steps",
            "--arm",
            "prompt=terse",
            "--model",
            "simulated/elm",
            "-M",
            "bernoulli=true",
        ),
        *("-T", "questions=50", "--log-dir", str(folder)),
    )
    assert done.returncode == 0, done.stderr
    assert "--max-tasks 2 --display none" in done.stderr
    assert "race: 2 models x 40 items = 80 evaluations; at most 80 of them" in done.stderr
    assert "race: 80 of 80 evaluations; prompt=steps is best" in done.stderr
    assert "%" not in done.stderr
    logs = _logs(folder)
    assert {log.eval.task for log in logs} == {"race_quiz-prompt=steps", "race_quiz-prompt=terse"}
    assert attempts(logs) == 80
    assert [s.name for s in board(logs).standings] == ["prompt=steps", "prompt=terse"]
    assert "\n\nprompt=steps is best: it has the highest mean over all 40 items.\n" in done.stdout


def test_refusals_exit_with_2(tmp_path: Path) -> None:
    refused = _command(
        EVALBUDGET,
        "inspect",
        "eval",
        str(QUIZ),
        "--race",
        "--budget",
        "9",
        *MODELS,
        "--log-dir",
        str(tmp_path),
    )
    assert refused.returncode == 2
    assert "minimum" in refused.stderr
    assert "Traceback" not in refused.stderr
