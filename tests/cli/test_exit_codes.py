"""One list of exit codes for all commands, and what a failure of its own is told by."""

from __future__ import annotations

import logging
import re

import click
import pytest
from tests.cli.commands import typed

from evalbudget.cli.main import cli
from evalbudget.errors import InvalidInputError
from evalbudget.exit_codes import ExitCode, codes_for_help, most_urgent

run = typed()


def _command(error: BaseException) -> click.Command:
    @click.command()
    def breaks() -> None:
        raise error

    return breaks


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RuntimeError("no such provider"), ExitCode.FAILED),
        (OSError("no space"), ExitCode.FAILED),
        (ImportError("no module of a task"), ExitCode.FAILED),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    ],
)
def test_what_fails_in_its_own_way_is_no_verdict(
    error: BaseException, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cli.commands, "breaks", _command(error))
    done = run("breaks")
    assert done.exit_code == code
    assert done.stdout == ""
    assert ("Traceback" in done.stderr) == (code == ExitCode.FAILED)
    assert str(error) in done.stderr


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (RuntimeError("refused the-key-of-a-variable"), "refused ***"),
        (InvalidInputError("no server at https://me:word@host"), "no server at https://***@host"),
    ],
)
def test_keys_are_not_in_what_it_says(
    error: Exception, left: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @click.command()
    def breaks() -> None:
        logging.getLogger("a.client").warning("sent %s", "the-key-of-a-variable")
        raise error

    monkeypatch.setenv("SOME_API_KEY", "the-key-of-a-variable")
    monkeypatch.setitem(cli.commands, "breaks", breaks)
    assert left in run("breaks").stderr
    assert caplog.messages == ["sent ***"]
    assert "unexpected extra argument (api_key=***" in run("plugins", "api_key=typed-wrongly").stderr


@pytest.mark.parametrize(
    "command",
    [
        *("", "gate", "doctor", "audit", "inspect", "inspect eval", "inspect eval-set", "inspect race"),
        *("inspect gate", "inspect audit", "inspect pairwise", "lm-eval", "lm-eval race", "lm-eval gate"),
        *("lm-eval audit", "lm-eval pairwise", "lm-eval score"),
    ],
)
def test_help_ends_with_the_same_list(command: str) -> None:
    text = " ".join(run(*command.split(), "--help").stdout.split())
    told = text.partition("Exit codes: ")[2]
    codes = [int(code) for code in re.findall(r"(?:^|; )(\d+) ", told)]
    assert codes == sorted(codes)
    assert {0, 2, 130} <= set(codes) <= {code.value for code in ExitCode}


def test_the_list_has_one_order_and_leaves_out_what_does_not_occur() -> None:
    assert codes_for_help(no="", failed="lost") == (
        "Exit codes: 0 done; 2 bad input; 3 undecided; 4 lost; 130 interrupted.\n"
    )


def test_of_several_codes_the_one_that_tells_most_counts() -> None:
    order = (0, 3, 1, 4, 2, 130)
    for place, code in enumerate(order):
        assert most_urgent(order[: place + 1]) == most_urgent(reversed(order[: place + 1])) == code
    assert most_urgent([]) == 0
    assert most_urgent([3, 77, 1]) == 77  # a host's own
    assert most_urgent([2, 77]) == 2
