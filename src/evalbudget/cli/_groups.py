"""Groups of commands that suggest near names, and commands whose code is imported when they are run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from evalbudget.errors import did_you_mean


class SuggestingGroup(click.Group):
    """A group that answers an unknown command with the nearest ones.

    Attributes:
        unknown: how the answer begins.
    """

    unknown = "no such command"

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click's, with a hint."""
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            hint = did_you_mean(args[0], self.list_commands(ctx)) + self.hint(args[0])
            raise click.UsageError(f"{self.unknown} {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def hint(self, name: str) -> str:
        """What else to say of a command that does not exist."""
        return ""


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
