"""Every command that a page shows is one that evalbudget has, with options that it takes."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from evalbudget.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"^```(?:console|bash|shell|yaml)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def shown() -> Iterator[tuple[str, str]]:
    """File and command line of all that are in blocks, as one line each."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md", "*.txt"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        for block in _BLOCK.findall((ROOT / name).read_text(encoding="utf-8")):
            for line in block.replace("\\\n", " ").splitlines():
                found = re.match(r"\s*(?:\$ )?(?:[A-Z_]+=\S+ )*(evalbudget .*)", line)
                if found:
                    yield name, found[1]


def words_of(command: str) -> list[str]:
    """As the shell would part it, up to a pipe or a comment; placeholders are left out."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|;&<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("|;&<>"):
            break
        words.append(word)
    return [word for word in words[1:] if word != "..."]


def check(words: list[str]) -> None:
    """Refuse what a command does not know; what it hands on to its host is the host's to know."""
    command: click.Command = cli
    with cli.make_context("evalbudget", [], resilient_parsing=True) as ctx:
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            if command.name == "backtest" and "/" in words[0]:
                words = ["repeats", *words]  # what it is without a command
            name, found, words = command.resolve_command(ctx, words)
            assert found is not None
            ctx = found.make_context(name, [], parent=ctx, resilient_parsing=True)
            command = ctx.command  # a group that is imported when it is asked for is one only now
        if words and "--help" not in words:
            try:
                command.make_context(ctx.info_name, list(words), parent=ctx.parent)
            except click.MissingParameter:
                pass  # the page leaves out what is said above
            except click.BadParameter as ex:
                if "does not exist" not in ex.message:  # the reader's file
                    raise


COMMANDS = sorted(set(shown()))


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 60


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_it_is_a_command_that_there_is(page: str, command: str) -> None:
    try:
        check(words_of(command))
    except click.ClickException as ex:
        raise AssertionError(f"{page}: {command}: {ex.format_message()}") from ex


@pytest.mark.parametrize(
    "wrong",
    ["evalbudget compar a b", "evalbudget compare a --margn 1", "evalbudget audit servee a"],
)
def test_what_there_is_not_is_found(wrong: str) -> None:
    with pytest.raises((AssertionError, click.ClickException)):
        check(words_of(wrong))
