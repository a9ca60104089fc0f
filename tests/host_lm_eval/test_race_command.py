"""``evalbudget lm-eval race`` as users run it: real processes, a real server, killed and run again."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.host_lm_eval.race_worlds import KIND, Racer, is_right
from tests.host_lm_eval.worlds import EVALBUDGET, broken_off, environment, write_task

import warm
from evalbudget.backtest import RecordedScores
from evalbudget_lm_eval.cli import lm_eval_command
from evalbudget_lm_eval.log_folder import open_scores
from loopback import Asked, Server

N = 40
BUDGET = 60
SKILLS = {"weak": 0.3, "fine": 0.6, "best": 0.95}


def skilled(asked: Asked) -> str:
    number = int(asked.prompt.rsplit("say ", 1)[1].split()[0])
    return f"{number}" if is_right(list(SKILLS).index(asked.model), SKILLS[asked.model], number) else "?"


def flags(server: Server, tasks: Path, out: Path, *more: str) -> list[str]:
    arms = [
        f"--arm={name}=local-chat-completions:{server.chat_args(name, max_retries=1, num_concurrent=2)}"
        for name in SKILLS
    ]
    return [
        *("race", *arms, "--budget", str(BUDGET), "--batch", "16", "--tasks", "numbers"),
        *("--include_path", str(tasks), "--apply_chat_template", "--output_path", str(out), "--log_samples"),
        *more,
    ]


def answered(server: Server) -> Counter[tuple[str, str]]:
    """How often each model answered each prompt."""
    return Counter((s.model, s.prompt) for s in server.served if s.status == 200)


def test_killed_it_goes_on_and_nothing_is_paid_for_twice(server: Server, tmp_path: Path) -> None:
    server.answer = skilled
    server.hold(30)
    tasks, out = write_task(tmp_path / "tasks", n=N), tmp_path / "out"
    board_file = tmp_path / "board.json"
    arguments = flags(server, tasks, out, f"--json={board_file}")
    command = [sys.executable, "-c", EVALBUDGET, "lm-eval", *arguments]
    # one server error after the other on one model, which the race must survive
    server.fail(500, times=2, model="fine", after=5)
    with (tmp_path / "first.log").open("w") as log:
        process = warm.Popen(command, host="lm-eval", env=environment(), stdout=log, stderr=log)
        while not server.held and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, (tmp_path / "first.log").read_text()
    server.release()
    done = warm.run(command, host="lm-eval", env=environment())
    assert done.returncode == 0, done.stderr
    board = json.loads(board_file.read_text())
    # two requests were under way when it was killed: they count as paid, and what was answered twice was
    # beside a failure or the kill
    failed = sum(standing["failed"] for standing in board["standings"])
    answers = answered(server)
    assert len(answers) == board["spent"] - failed
    assert answers.total() <= board["spent"]
    assert board["spent"] <= BUDGET
    assert 2 <= failed <= 6
    decided = {"only one model is left", "proved, with 95% confidence"}
    assert board["spent"] == BUDGET or board["stop_reason"] in decided
    assert board["standings"][0]["name"] == "best"
    assert "evaluations were known from" in " ".join(board["notes"])
    # the table, the sentence and what it cost, within 80 columns
    assert done.stdout.lstrip().startswith(board["sentence"][:60])
    assert "best" in done.stdout.split("status")[1].splitlines()[2]
    assert max(map(len, done.stdout.splitlines()[:10])) <= 80
    assert "evaluations;" in done.stderr
    # our own reader takes the output: each arm a model, each document an item
    recorded = open_scores(out)
    assert isinstance(recorded, RecordedScores)
    assert set(recorded.models) == set(SKILLS)
    asked = {s["name"]: s["readings"] for s in board["standings"]}
    assert {m: int(recorded.counts[i].sum()) for i, m in enumerate(recorded.models)} == asked


@pytest.mark.usefixtures("own_tasks_only")
@pytest.mark.parametrize("command", [["race"], ["run", "--sampler", "ucb-e"]])
def test_a_race_nobody_can_run_could_not_be_evaluated(
    server: Server, tmp_path: Path, command: list[str]
) -> None:
    server.fail(500, times=10**6)
    tasks = write_task(tmp_path / "tasks", n=20)
    _, *options = flags(server, tasks, tmp_path / "out", "--budget", "60")
    done = CliRunner().invoke(lm_eval_command, [*command, *options])
    assert done.exit_code == 4, done.output
    assert "No model has a score." in done.output
    assert done.output.count("it answered nothing") >= len(SKILLS)


@pytest.mark.usefixtures("own_tasks_only")
def test_interrupted_it_says_how_to_go_on(tmp_path: Path) -> None:
    tasks = write_task(tmp_path / "tasks", n=40)
    arguments = [
        *("race", f"--arm=a={KIND}:skill=0.9,seed=1", f"--arm=b={KIND}:skill=0.5,seed=2", "--budget", "1x"),
        *("--tasks", "numbers", "--include_path", str(tasks), "--output_path", str(tmp_path / "out")),
        *("--num_fewshot", "1", "--sampler", "uniform"),
    ]
    with broken_off(Racer, "_answer", at=36):
        stopped = CliRunner().invoke(lm_eval_command, arguments)
    assert stopped.exit_code == 130
    assert "interrupted after 32 evaluations; the same command goes on" in stopped.output
    done = CliRunner().invoke(lm_eval_command, arguments)
    assert done.exit_code == 0, done.output
    assert len(Racer.asked) == len(set(Racer.asked)) == 40
    assert "Spent:   40 of the budget of 40 evaluations; 50% of the whole grid of 80" in done.output
