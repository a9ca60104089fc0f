"""Runs on inspect that end once something is known: every item, or the mean of one model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log
from tests.claims import variant
from tests.host_inspect.race_tasks import attempts, board, model, quiz, run
from tests.host_inspect.worlds import UNWATCHED

import warm
from evalbudget.cli.main import cli
from evalbudget_inspect import race

EVALBUDGET = "import sys; from evalbudget.cli.main import main; sys.argv[0] = 'evalbudget'; main()"
EXAMPLES = Path(__file__).parents[2] / "examples"


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "INSPECT_DISPLAY"}
    return warm.run(
        [sys.executable, "-c", EVALBUDGET, "inspect", *arguments], host="inspect", env=environment | UNWATCHED
    )


def only(folder: Path) -> EvalLog:
    (info,) = list_eval_logs(str(folder))
    return read_eval_log(info)


def test_every_item_is_known(tmp_path: Path) -> None:
    task = str(EXAMPLES / "story_rating.py")
    done = command(
        *("eval", task, "--budget", "4000", "--until", "item±4", "--score-range", "1..10", "--limit", "5"),
        *(
            "--model",
            "simulated/writer",
            "--model-role",
            "grader=simulated/judge",
            "--log-dir",
            str(tmp_path),
        ),
        *("--display", "plain"),
    )
    assert done.returncode == 0, done.stderr
    assert "Stopped   every item that can be scored is known to ± 4" in done.stdout
    log = only(tmp_path)
    assert 5 * 3 < len(log.samples or []) < 100


@pytest.mark.parametrize("at_once", [variant(1), 9])
def test_the_mean_of_one_model_is_known(tmp_path: Path, at_once: int) -> None:
    logs = run(race(quiz(300), until="±0.1"), model("a", 0.9), tmp_path, max_samples=at_once)
    found = board(logs)
    (standing,) = found.standings
    assert found.sentence.startswith("simulated/a scores ")
    assert found.stop_reason == "every model's mean is known to within 0.1"
    assert standing.all_upper - standing.all_lower <= 0.2 + 1e-9
    assert attempts(logs) == standing.readings < 150


def test_a_cap_ends_it_before(tmp_path: Path) -> None:
    logs = run(race(quiz(100), until="±0.01", budget=30), model("a", 0.9), tmp_path)
    assert (attempts(logs), board(logs).stop_reason) == (30, "budget used up")


def test_the_flag_of_eval(tmp_path: Path) -> None:
    quiz_file, one = str(EXAMPLES / "race_quiz.py"), ("--model", "simulated/alder", "-M", "bernoulli=true")
    done = command(
        *("eval", quiz_file, "--until", "±0.2", *one, "--limit", "200", "--log-dir", str(tmp_path)),
        *("--no-log-realtime",),
    )
    assert done.returncode == 0, done.stderr
    assert "simulated/alder scores 0." in done.stdout
    assert "until its mean is known to ±0.2" in done.stderr
    assert attempts([only(tmp_path)]) < 100
    for more, told in (
        (("eval", "--until", "±0.1", "--repeat", "judge"), "--repeat is for repeats"),
        (("eval", "--until", "±0"), "write a half-width above 0"),
        (("race", "--until", "item±0.1"), "about single items, which a race asks once"),
        (("race", "--until", "±0.1", "--until-proved"), "give one of them"),
        (("race", "--budget", "50"), "a race needs two models or settings"),
        (("eval", "--until", "item±1", "--budget", "90"), "add for example --score-range"),
    ):
        refused = CliRunner().invoke(cli, ["inspect", more[0], quiz_file, *one, *more[1:]])
        assert refused.exit_code == 2, refused.stderr
        assert told in refused.stderr
