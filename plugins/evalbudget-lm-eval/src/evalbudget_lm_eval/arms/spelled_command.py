"""A command with arms, whose flags of ours are understood with hyphens, too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from evalbudget.flags import Flag
from evalbudget_lm_eval.host.flag_spelling import as_spelled

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
