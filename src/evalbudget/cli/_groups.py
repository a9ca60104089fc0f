"""Groups of commands that suggest near names, and commands whose code is imported when they are run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import click

from evalbudget.errors import did_you_mean
from evalbudget.hooks._plugins import plugins


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
            hint = self.hint(args[0]) or did_you_mean(args[0], self.list_commands(ctx))
            raise click.UsageError(f"{self.unknown} {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def hint(self, name: str) -> str:
        """What to say of a command that does not exist, where that is more than which one is near."""
        return ""


class PluginsGroup(SuggestingGroup):
    """A group that plugins add commands to, once it is asked for one that it does not have, or for all.

    Attributes:
        known_as: what plugins know it by (``inspect``, say); empty for ``evalbudget`` itself.
        extras: the extra of evalbudget that brings a command, by the command's name.
    """

    known_as = ""
    extras: Mapping[str, str] = MappingProxyType({"pairwise": "pairwise"})
    _extended = False

    def extend(self) -> None:
        """Let plugins add their commands, once."""
        if not self._extended:
            self._extended = True
            plugins().add_commands(self, self.known_as)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """As click's, with those of plugins."""
        self.extend()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """As click's, or that of a plugin."""
        command = super().get_command(ctx, cmd_name)
        if command is None:
            self.extend()
            command = super().get_command(ctx, cmd_name)
        return command

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """As click's, without examples of commands that are not there."""
        lines = inspect.cleandoc(self.epilog or "").splitlines()
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\n".join(line for line in lines if self._can_run(ctx, line)))

    def _can_run(self, ctx: click.Context, line: str) -> bool:
        """Whether it is no example, or one of a command that there is."""
        path, words = ["evalbudget", *self.known_as.split()], line.split()
        if len(words) <= len(path) or words[: len(path)] != path:
            return True
        return self.get_command(ctx, words[len(path)]) is not None

    def hint(self, name: str) -> str:
        """Which extra brings it, if one does; or that its plugin is there and was left out."""
        extra = self.extras.get(name)
        if extra is None:
            return ""
        if any(found.name == extra for found in plugins().found):
            return (
                f" The plugin of the command {name!r} is installed and left out; evalbudget plugins says why."
            )
        return f" The command {name!r} comes with its plugin: pip install 'evalbudget[{extra}]'."


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
