import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from tests.cli.commands import typed

from evalbudget import __version__
from evalbudget.cli import main as cli_main
from evalbudget.cli._audit import audit
from evalbudget.errors import InvalidInputError

run = typed()


def test_version() -> None:
    assert run("--version").output.strip() == f"evalbudget, version {__version__}"


def test_help_lists_commands_with_examples() -> None:
    output = run("--help").output
    assert "backtest" in output
    assert "plugins" in output
    assert "evalbudget backtest logs/" in output


def test_unknown_command_suggests_the_nearest() -> None:
    result = run("backtset")
    assert result.exit_code == 2
    assert "Did you mean 'backtest'?" in result.output


def test_help_has_no_example_of_a_command_whose_package_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    of_packages = {(): ["inspect"], ("audit",): ["serve", "export", "sync"]}
    for group, path in ((cli_main.cli, ()), (audit, ("audit",))):
        there = run(*path, "--help").output
        monkeypatch.setattr(group, "_extended", True)
        for name in of_packages[path]:
            example = " ".join(["evalbudget", *path, name])
            assert example in there
            monkeypatch.delitem(group.commands, name)
            assert example not in run(*path, "--help").output
    assert "evalbudget audit status audit.sqlite" in run("--help").output
    assert "evalbudget audit verdict audit.sqlite" in run("audit", "--help").output
    assert "audit serve" not in run("--help").output


@pytest.mark.parametrize("name", ["inspect", "lm-eval", "pairwise"])
def test_a_command_without_its_package_names_the_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_main.cli, "_extended", True)  # by plugins among which that one is not
    monkeypatch.delitem(cli_main.cli.commands, name, raising=False)
    monkeypatch.setattr("evalbudget.cli._groups.plugins", lambda: SimpleNamespace(found=()))
    result = run(name, "run")
    assert result.exit_code == 2
    said = f"The command {name!r} comes with its plugin: pip install 'evalbudget[{name}]'."
    assert f"no such command {name!r}. {said}" in result.output


def test_our_errors_are_printed_plainly_with_exit_code_2(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise InvalidInputError("the remedy")

    monkeypatch.setattr("evalbudget.cli._plugins_command.plugins", refuse)
    result = run("plugins")
    assert result.exit_code == 2
    assert result.output.strip() == "Error: the remedy"


def test_plugins_lists_built_ins_as_json() -> None:
    result = run("plugins", "--json")
    found = {info["name"]: info for info in json.loads(result.output)}
    assert "eb-bernstein" in found["builtin"]["provides"]["samplers"]
    assert found["builtin"]["version"] == __version__


def test_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "evalbudget", "--version"], capture_output=True, text=True, check=True
    )
    assert __version__ in done.stdout


@pytest.mark.parametrize(
    ("typed", "completed"), [("evalbudget comp", "compare"), ("evalbudget compare --mar", "--margin")]
)
def test_the_shell_completes_commands_and_options(typed: str, completed: str) -> None:
    words = {"COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", "from evalbudget.cli.main import main; main()"],
        env={**os.environ, **words, "_EVALBUDGET_COMPLETE": "bash_complete"},
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    assert f"plain,{completed}" in done.stdout.split()
