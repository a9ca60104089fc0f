"""How commands on lm-eval end without what they were asked for, and what is on standard output."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tests.host_lm_eval.worlds  # noqa: F401  (registers the model)
from click.testing import CliRunner, Result
from tests.host_lm_eval.worlds import write_task

from evalbudget.cli.main import cli

pytestmark = pytest.mark.usefixtures("own_tasks_only")
COIN = "evalbudget-test-coin"
TASK = ("--tasks", "numbers", "--include_path", "tasks")


def run(*words: str) -> Result:
    write_task(Path("tasks"), n=12)
    return CliRunner().invoke(cli, ["lm-eval", *words])


@pytest.mark.parametrize(
    ("flags", "part"),
    [
        (("--model", "evalbudget-test-con", *TASK), f"Did you mean '{COIN}'"),
        (("--model", COIN, "--tasks", "nowhere", "--include_path", "tasks"), "Tasks not found: nowhere"),
        (("--model", COIN, *TASK, "--budgt", "30"), "Did you mean --budget?"),
    ],
)
def test_what_nobody_knows_is_refused_once_and_without_a_traceback(flags: tuple[str, ...], part: str) -> None:
    done = run("run", *flags, "--budget", "24")
    assert done.exit_code == 2
    assert done.stderr.count(part) == 1
    assert "Traceback" not in done.output


def test_a_misspelled_flag_of_ours_is_looked_for_among_ours_where_none_is_spelled_right() -> None:
    done = run("run", "--model", COIN, *TASK, "--budgt", "30")
    assert (done.exit_code, "Did you mean --budget?" in done.stderr) == (2, True)


def test_a_goal_that_the_budget_did_not_do_for_is_undecided() -> None:
    flags = ("run", "--model", COIN, "--model_args", "noise=True", *TASK, "--score_range", "0..1")
    assert run(*flags, "--budget", "24").exit_code == 0
    assert run(*flags, "--budget", "48", "--until", "item±0.01").exit_code == 3


def test_a_race_on_standard_output_is_json_alone_and_ends_undecided() -> None:
    arms = ("--arm", f"a={COIN}:noise=True", "--arm", f"b={COIN}:noise=True,salt=b")
    done = run("race", *arms, *TASK, "--budget", "12", "--until_proved", "--json", "-")
    assert json.loads(done.stdout)["outcome"] == "undecided"
    assert done.exit_code == 3
