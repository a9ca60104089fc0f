"""argv of ``evalbudget inspect eval`` as inspect gets it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from inspect_ai._cli.main import inspect as host

from evalbudget.cli.main import cli
from evalbudget.errors import InvalidInputError
from evalbudget_inspect.host.rewrite import ENTRY, host_arguments


def _rewrite(*args: str, **ours: str) -> list[list[str]]:
    return host_arguments(host.commands["eval"], args, ours, "evalbudget.")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    source = "from inspect_ai import Task, task\n\n@task\ndef {name}():\n    return Task()\n"
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(source.format(name=name))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_task_becomes_an_argument(folder: Path) -> None:
    assert _rewrite("one.py", "--model", "m", budget="50") == [
        [ENTRY, "-T", f"evalbudget.task={folder}/one.py@one", "-T", "evalbudget.budget=50", "--model", "m"]
    ]
    (named,) = _rewrite("--model", "m", "one.py@one", budget="50")
    assert named[2] == f"evalbudget.task={folder}/one.py@one"
    (registered,) = _rewrite("some_package/some_task", budget="50")
    assert registered[2] == "evalbudget.task=some_package/some_task"


@pytest.mark.parametrize(
    "flags",
    [
        ("--model", "one.py"),
        ("--tags", "one.py", "-T", "file=one.py"),
        ("--model-role", 'grader={"model": "one.py", "temperature": 1}', "-T", "one.py=1"),
        ("--log-dir", "one.py", "-M", "path=one.py", "--limit", "5"),
    ],
)
def test_a_flag_that_reads_like_the_task_is_left_alone(folder: Path, flags: tuple[str, ...]) -> None:
    for args in ((*flags, "one.py"), ("one.py", *flags)):
        (rewritten,) = _rewrite(*args, budget="50")
        assert rewritten[5:] == list(flags)


def test_several_tasks_and_folders(folder: Path) -> None:
    by_name = _rewrite("one.py", "two.py", "--limit", "3", budget="50")
    assert [arguments[2].rpartition("@")[2] for arguments in by_name] == ["one", "two"]
    assert all(arguments[-2:] == ["--limit", "3"] for arguments in by_name)
    assert sorted(_rewrite(str(folder), budget="50")) == sorted(_rewrite(budget="50"))
    assert len(_rewrite(budget="50")) == 2


def test_a_missing_file_says_so(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"'three\.py' does not exist"):
        _rewrite("three.py", budget="50")


def test_commands_of_the_host_pass_through() -> None:
    runner = CliRunner()
    shown = runner.invoke(cli, ["inspect", "--help"])
    assert shown.exit_code == 0
    assert {"eval", "eval-set", "eval-retry", "view", "score"} <= set(shown.output.split())
    ours = runner.invoke(cli, ["inspect", "eval", "--help"])
    assert ours.exit_code == 0
    assert "--budget" in ours.output
    assert "--repeat" in ours.output
    theirs = runner.invoke(cli, ["inspect", "list", "--help"])
    assert theirs.exit_code == 0
    assert "tasks" in theirs.output
    wrong = runner.invoke(cli, ["inspect", "evl"])
    assert wrong.exit_code == 2
    assert "Did you mean 'eval'" in wrong.output


def test_without_a_budget_the_command_is_stock(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []
    monkeypatch.setattr(
        "evalbudget_inspect.host.run_host.run_host", lambda arguments: given.append(arguments) or 0
    )
    result = CliRunner().invoke(cli, ["inspect", "eval", "a.py", "--model", "m", "-T", "budget=3"])
    assert result.exit_code == 0
    assert given == [["eval", "a.py", "--model", "m", "-T", "budget=3"]]
