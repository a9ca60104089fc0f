"""A command with arms, whose flags of ours are understood with hyphens, too."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from evalbudget.cli.flags import options_of
from evalbudget.flags import Flag
from evalbudget_lm_eval.host.flag_spelling import as_spelled, spelled

TYPED = f"{__name__}.typed"
"""Key in the context's ``meta``: the arguments as they were typed."""


class SpelledCommand(click.Command):
    """A command of click.

    Args:
        ours: its flags of ours.
        more: see click.
    """

    def __init__(self, *, ours: Iterable[Flag], **more: Any) -> None:
        super().__init__(**more)
        self._ours = tuple(ours)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """See click."""
        ctx.meta[TYPED] = list(args)
        return super().parse_args(ctx, as_spelled(args, self._ours))


def host_command(
    name: str, flags: Sequence[Flag], examples: str, *first: Callable[[Any], Any]
) -> Callable[[Callable[..., None]], click.Command]:
    """A command of ours that passes the host's flags on, as ``args``.

    Args:
        name: to type.
        flags: of ours.
        examples: below its help.
        first: its own arguments, which come before.
    """

    def made(function: Callable[..., None]) -> click.Command:
        theirs = click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[LM-EVAL'S FLAGS]...")
        decorated: Any = click.pass_context(function)
        for decorate in (theirs, *reversed(first), options_of(flags, spelled)):
            decorated = decorate(decorated)
        settings = {"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}
        more = {"ours": flags, "context_settings": settings, "epilog": examples}
        return click.command(name=name, cls=SpelledCommand, **more)(decorated)

    return made
