"""Whoever reads the pages finds every option of every command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from evalbudget.cli._groups import LazyCommand
from evalbudget.cli.main import cli

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [path for path in DOCS.rglob("*.md") if path.parent.name != "benchmarks"]


def _commands(command: click.Command, path: str = "evalbudget") -> Iterator[tuple[str, click.Command]]:
    command = command._load() if isinstance(command, LazyCommand) else command
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _commands(inner, f"{path} {name}")


def test_every_option_is_on_a_page() -> None:
    said = set(re.findall(r"(?<![\w-])--?[A-Za-z][\w-]*", " ".join(path.read_text() for path in PAGES)))
    said |= {word.replace("_", "-") for word in said}
    lacking = {
        f"{path} {option.opts[-1]}"
        for path, command in _commands(cli)
        for option in command.params
        if isinstance(option, click.Option)
        if said.isdisjoint(name.replace("_", "-") for name in (*option.opts, *option.secondary_opts))
    }
    assert lacking == {"evalbudget --version"}
