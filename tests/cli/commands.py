"""Commands in this process, and how they refuse."""

from __future__ import annotations

from collections.abc import Callable

from click.testing import CliRunner, Result

from evalbudget.cli.main import cli


def typed(*words: str) -> Callable[..., Result]:
    """Runs ``evalbudget`` with these words and any arguments after them."""

    def run(*arguments: object, stdin: str | None = None) -> Result:
        return CliRunner().invoke(cli, [*words, *map(str, arguments)], input=stdin)

    return run


def refused(result: Result, *parts: str) -> None:
    """Exit code 2, and nothing but a message with these parts."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    message = " ".join(result.stderr.split())
    for part in parts:
        assert part in message, message
    assert "Traceback" not in message
