"""The command line: what is printed, written and passed on; settings that race each other."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log
from tests.host_inspect.race_tasks import attempts, board, run
from tests.host_inspect.worlds import COMMAND, UNWATCHED

import warm
from evalbudget.cli.main import cli
from evalbudget_inspect.cli.leaderboard import leaderboard

QUIZ = Path(__file__).parents[2] / "examples" / "race_quiz.py"
MODELS = ("--model", "simulated/alder,simulated/elm,simulated/ginkgo", "-M", "bernoulli=true")


def _command(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "INSPECT_DISPLAY"}
    return warm.run([*COMMAND, "race", *arguments], host="inspect", env=environment | UNWATCHED)


def _logs(folder: Path) -> list[EvalLog]:
    return [read_eval_log(info) for info in list_eval_logs(str(folder))]


def _cells(logs: list[EvalLog]) -> Any:
    return {
        (log.eval.task, log.eval.model): sorted((s.id, s.epoch) for s in log.samples or []) for log in logs
    }


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        (["--level", "0.9"], "--level is of gates; what a race may err with is --sampler-option delta=.05"),
        (["--baseline", "x"], "--baseline is for gates; use evalbudget inspect gate in the place of race"),
    ],
)
def test_flags_of_gates_are_refused_as_such(flag: list[str], message: str) -> None:
    done = CliRunner().invoke(cli, ["inspect", "race", str(QUIZ), *flag, *MODELS, "--budget", "18"])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())


def test_by_flag_and_by_registry(tmp_path: Path) -> None:
    flag, entry = tmp_path / "flag", tmp_path / "entry"
    common = [*MODELS, "--limit", "12", "--display", "none", "--no-log-realtime"]
    done = _command(
        *(str(QUIZ), "--sampler", "ucb-e", "--batch", "4", "--budget", "18"),
        *("--json", str(tmp_path / "board.json"), "--log-dir", str(flag), *common),
    )
    assert done.returncode == 0, done.stderr
    assert "+ inspect eval evalbudget_inspect/race -T" in done.stderr
    native = run(
        "evalbudget_inspect/race",
        MODELS[1].split(","),
        entry,
        task_args={"task": str(QUIZ), "budget": 18, "sampler": "ucb-e", "evalbudget.batch": 4},
        model_args={"bernoulli": True},
        limit=12,
    )
    assert attempts(_logs(flag)) == 18
    assert _cells(_logs(flag)) == _cells(native)
    found = json.loads((tmp_path / "board.json").read_text())
    assert found == json.loads(json.dumps(board(_logs(flag)).as_json))
    assert found["spent"] == 18
    words = " ".join(done.stdout.split())
    assert "18 of the budget of 18 evaluations; 50% of the whole grid of 36 (3 models x 12 items)" in words
    assert found["sentence"] in words
    for name in ("alder", "elm", "ginkgo"):
        assert f"simulated/{name}" in done.stdout
    again = CliRunner().invoke(leaderboard, [str(entry)])
    assert again.exit_code == 0
    assert found["sentence"] in " ".join(again.output.split())


def test_settings_by_flag(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    done = _command(
        *(str(QUIZ), "--sampler", "uniform", "--budget", "50", "--limit", "25"),
        *("--arm", "prompt=steps", "--arm", "prompt=terse", "--model", "simulated/elm", *MODELS[2:]),
        *("-T", "questions=50", "--log-dir", str(folder)),
    )
    assert done.returncode == 0, done.stderr
    assert "--max-tasks 2 --display none" in done.stderr
    assert "race: 2 models x 25 items = 50 evaluations; at most 50 of them" in done.stderr
    assert "race: 50 of 50 evaluations; prompt=steps is best" in done.stderr
    assert "%" not in done.stderr
    logs = _logs(folder)
    assert {log.eval.task for log in logs} == {"race_quiz-prompt=steps", "race_quiz-prompt=terse"}
    assert attempts(logs) == 50
    assert [s.name for s in board(logs).standings] == ["prompt=steps", "prompt=terse"]
    told = "\nprompt=steps is best: it has the highest mean over all 25 items, as scored once.\n"
    assert done.stdout.startswith(told)


def test_refusals_exit_with_2(tmp_path: Path) -> None:
    command = ["inspect", "eval", str(QUIZ), "--sampler", "race", "--budget", "9"]
    refused = CliRunner().invoke(cli, [*command, *MODELS, "--log-dir", str(tmp_path)])
    assert refused.exit_code == 2
    assert "minimum" in refused.output
    assert isinstance(refused.exception, SystemExit)
