"""A command whose code is imported when it is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


class LazyCommand(click.Command):
    """Stands for a command of a plugin whose host takes seconds to import.

    Args:
        name: of the command.
        load: imports and returns it.
        short_help: one line for the list of commands.
    """

    def __init__(self, name: str, load: Callable[[], click.Command], short_help: str) -> None:
        super().__init__(name, short_help=short_help)
        self._load = load

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Of the real command, which takes over from here."""
        return self._load().make_context(info_name, args, parent=parent, **extra)
