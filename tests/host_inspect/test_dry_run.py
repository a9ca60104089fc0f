"""``--dry-run`` says what would be bought, refuses what would be refused, and asks nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.host_inspect.worlds import UNWATCHED

from evalbudget.budget import Unit, shown_amount
from evalbudget.cli.main import cli
from evalbudget.run import spent_on
from evalbudget_inspect.providers import simulated


@pytest.fixture(autouse=True)
def _asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated.SimulatedJudge, "_rating", _refuse)


def _refuse(*given: Any) -> None:
    raise AssertionError("a dry run asked a model")


def _dry(file: Path, *flags: str) -> Result:
    command = ["inspect", "eval", str(file), "--model", "simulated/a,simulated/b", "--dry-run", *flags]
    return CliRunner().invoke(cli, [*command, "--model-role", "grader=simulated/j", "--max-tokens", "60"])


def test_scores(task_file: Path) -> None:
    result = _dry(task_file, "--budget", "100")
    assert result.exit_code == 0, result.output
    assert "one budget for all runs: rating 50, for each of 2 models; 100 scores in all" in result.output
    assert "Task      rating with simulated/a\nItems     6\n" in result.output
    assert "rating with simulated/b" in result.output
    assert "Expected  50 readings" in result.output


def test_money(task_file: Path, tmp_path: Path) -> None:
    prices = tmp_path / "p.yaml"
    prices.write_text("simulated/*: {input: 1, output: 10}\n")
    result = _dry(task_file, "--budget", "$0.5", "--prices", str(prices))
    assert result.exit_code == 0, result.output
    assert "one budget for all runs: rating $0.25, for each of 2 models; $0.50 in all" in result.output
    assert "A call    $0.0007" in result.output
    assert "no earlier run of this task and model" in result.output
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "add --budget"),
        (["--budget", "5", "--sampler", "auto"], "leaves 2 scores to each run of 'rating', which needs"),
        (["--budget", "$5"], "no price is known for simulated/a, simulated/j"),
        (["--budget", "$0.0001", "--prices", "p.yaml"], "is below one call of simulated/a"),
        (["--budget", "50", "--score", "nope"], "unknown score 'nope'"),
        (["--budget", "50", "--store", "."], "is a folder; name a file in it, for example"),
        (["--budget", "50", "--store", "no/x.db"], "no does not exist; create it first"),
        (["--budget", "50", "--sampler", "audit-eprocess"], "--budget has no meaning in an audit"),
        (["--sampler", "audit-eprocess", "--judge-prices", "a=1"], "--judge-prices is for repeats"),
    ],
)
def test_what_would_be_refused_is(
    task_file: Path, flags: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text("simulated/*: {input: 1, output: 10}\n")
    result = _dry(task_file, *flags)
    assert result.exit_code == 2, result.output
    assert message in result.output


ARMS = """\
from inspect_ai import Task, task
from evalbudget_inspect.demo.story_rating import story_rating

@task
def rating(stories: int = 6, shots: int = 0) -> Task:
    return story_rating(stories)
"""


def _race(folder: Path, *flags: str, command: str = "race") -> Result:
    (folder / "arms.py").write_text(ARMS)
    models = ["--model", "simulated/a,simulated/b", "--model-role", "grader=simulated/j"]
    arguments = [command, str(folder / "arms.py"), *models, "--max-tokens", "60", "--dry-run", *flags]
    return CliRunner().invoke(cli, ["inspect", *arguments])


def test_a_race(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text("simulated/*: {input: 1, output: 10}\n")
    arms = ["--arm", "shots=1", "--arm", "shots=2"]
    paid = ["--budget", "$0.5", "--prices", str(tmp_path / "p.yaml")]
    result = _race(tmp_path, *paid, *arms)
    assert result.exit_code == 0, result.output
    names = ", ".join(f"shots={n} simulated/{m}" for n in (1, 2) for m in "ab")
    assert f"Task      rating with {names}\nItems     6\n" in result.output
    assert "Budget    $0.50\n" in result.output
    assert "A call    $0.0007" in result.output
    assert result.output.endswith("No call was made.\n")
    result = _race(tmp_path, "--budget", "10")
    assert "rating with simulated/a, simulated/b" in result.output
    assert "Expected  10 readings" in result.output
    beside = _race(tmp_path, "--budget", "10", "--sampler", "race", command="eval")
    assert beside.output == result.output
    assert not (tmp_path / "logs").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--budget", "3"], "Raise --budget to 8 or more, or race fewer models"),
        (["--budget", "3", "--sampler", "lucb"], "give a smaller --batch, or race fewer models"),
        (["--budget", "$5"], "no price is known for simulated/a, simulated/b, simulated/j"),
        (["--budget", "$0.0001", "--prices", "p.yaml"], "is below one call of simulated/a"),
        (["--budget", "50", "--score", "nope"], "unknown score 'nope'"),
        (["--budget", "50", "--all-arms", "2", "--store", "no/x.db"], "no does not exist; create it first"),
        (["--budget", "$5", "other.py", "--prices", "p.yaml"], "holds 2 races, of one task each"),
    ],
)
def test_what_a_race_would_refuse_is(
    flags: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.yaml").write_text("simulated/*: {input: 1, output: 10}\n")
    Path("other.py").write_text(ARMS)
    result = _race(tmp_path, *flags)
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_of_a_run_that_goes_on(task_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the run itself asks
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.yaml").write_text("simulated/*: {input: 1, output: 10, max_output: 60}\n")
    command = ["inspect", "eval", str(task_file), "--model", "simulated/a", "--limit", "4", "-T", "stories=5"]
    command += ["--model-role", "grader=simulated/j", "--log-dir", "logs", "--display", "none"]
    run = CliRunner(env=UNWATCHED)
    done = run.invoke(cli, [*command, "--budget", "$0.01", "--prices", "p.yaml"])
    assert done.exit_code == 0, done.output
    (log,) = Path("logs").glob("*.eval")
    (bill,) = Path("logs").glob(".evalbudget-*.bill")
    with monkeypatch.context() as patch:
        patch.setattr(simulated.SimulatedJudge, "_rating", _refuse)
        done = CliRunner().invoke(cli, ["inspect", "eval-retry", str(log), "--dry-run"])
    assert done.exit_code == 0, done.output
    said = " ".join(done.output.split())
    assert "Task rating with simulated/a Items 4 " in said
    assert f"So far {shown_amount(sum(spent_on(bill)[1].values()), Unit.USD)} spent, by its bill;" in said
    assert said.endswith("No call was made.")
    bill.unlink()
    gone = CliRunner().invoke(cli, ["inspect", "eval-retry", str(log), "--dry-run"])
    assert gone.exit_code == 2
    assert "is not beside its log" in " ".join(gone.stderr.split())
    none = CliRunner().invoke(cli, ["inspect", "eval-retry", "logs/none.eval", "--dry-run"])
    assert "there is no log logs/none.eval" in none.stderr


def test_of_a_run_in_scores_that_goes_on(
    task_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the run itself asks
    command = ["inspect", "eval", str(task_file), "--model", "simulated/a", "--limit", "4", "--budget", "13"]
    command += ["--log-dir", str(tmp_path / "logs"), "--display", "none"]
    command += ["--model-role", "grader=simulated/j"]
    done = CliRunner(env=UNWATCHED).invoke(cli, command)
    assert done.exit_code == 0, done.output
    (log,) = (tmp_path / "logs").glob("*.eval")

    def so_far() -> str:
        found = CliRunner().invoke(cli, ["inspect", "eval-retry", str(log), "--dry-run"])
        assert found.exit_code == 0, found.output
        return " ".join(found.output.split())

    assert "So far 13 scores spent, by its book" in so_far()
    (book,) = (tmp_path / "logs").glob(".evalbudget-*.book")
    book.unlink()
    assert "So far what the log says, since its book is not beside it" in so_far()
