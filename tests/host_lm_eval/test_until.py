"""Runs on lm-eval that end once something is known: every document, or the mean of one model."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.host_lm_eval.race_worlds import KIND, Racer, fresh_racers, manager, racer
from tests.host_lm_eval.worlds import write_task

from evalbudget.cli.main import cli
from evalbudget_lm_eval import race

EXAMPLES = Path(__file__).parents[2] / "examples"


def command(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["lm-eval", *arguments])


def test_the_mean_of_one_model_is_known(tmp_path: Path) -> None:
    with fresh_racers():
        result = race({"a": racer(0.9, 1)}, "numbers", until="±0.1", task_manager=manager(tmp_path, n=300))
    (standing,) = result.leaderboard.standings
    assert result.leaderboard.sentence.startswith("a scores 0.")
    assert result.leaderboard.stop_reason == "every model's mean is known to within 0.1"
    assert standing.all_upper - standing.all_lower <= 0.2 + 1e-9
    assert len(Racer.asked) == standing.readings < 150


@pytest.mark.usefixtures("own_tasks_only")
def test_by_the_command_of_a_run_and_of_a_race(tmp_path: Path) -> None:
    judged = ("--model", "dummy", "--tasks", "judged_stories")
    judged += ("--include_path", str(EXAMPLES / "lm_eval_judged"), "--score_range", "1..10")
    for way in ("run", "race"):
        done = command(way, *judged, "--until", "±0.8")
        assert done.exit_code == 0, done.stderr
        assert "scores 3." in done.stdout
        assert "until its mean is known to ±0.8" in done.stderr
    known = command("run", *judged, "--until", "item±3", "--budget", "3000", "--limit", "8")
    assert known.exit_code == 0, known.stderr
    assert "Stopped   every item that can be scored is known to ± 3" in known.stdout


@pytest.mark.usefixtures("own_tasks_only")
def test_what_is_refused(tmp_path: Path) -> None:
    numbers = ("--tasks", "numbers", "--include_path", str(write_task(tmp_path, n=9)), "--model", KIND)
    for more, told in (
        (("run", "--until", "±0"), "write a half-width above 0"),
        (("race", "--until", "item±0.1"), "about single items, which a race asks once"),
        (("run", "--until", "item±1", "--budget", "90"), "add for example --score-range"),
    ):
        refused = command(more[0], *numbers, *more[1:])
        assert refused.exit_code == 2, refused.stderr
        assert told in refused.stderr
