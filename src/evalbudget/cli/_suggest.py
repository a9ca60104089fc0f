"""Groups of commands that suggest near names."""

from __future__ import annotations

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
