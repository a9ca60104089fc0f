"""``evalbudget backtest``: what a sampler would have saved on recorded scores, one file per question."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import click

from evalbudget.cli._groups import SuggestingGroup
from evalbudget.cli.backtest._audits_options import audits
from evalbudget.cli.backtest._judges_options import judges
from evalbudget.cli.backtest._races_options import races
from evalbudget.cli.backtest._repeats_options import repeats
from evalbudget.cli.backtest._shared import listed
from evalbudget.hooks._plugins import plugins

EXAMPLES = """\b
Examples:
  evalbudget backtest scores.npz
  evalbudget backtest repeats scores.csv --sampler uniform,auto --budget 10x,5000
  evalbudget backtest judges scores.npz --rotation cyclic,single --budget 500
  evalbudget backtest races models.npz --sampler uniform,ucb-e,race --budget 5%,10%
  evalbudget backtest audits labelled.npz --sampler audit-eprocess --label-price 20

\b
Without a command, the samplers named decide which it is; without any, repeats.
A .csv has the columns item, score and optionally model, rater, repeat and cost.
"""


class _Backtest(SuggestingGroup):
    """A file in the place of a command: the command is the one that the samplers are for."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        named = args and (args[0] in self.commands or args[0] in ctx.help_option_names)
        if args and not named and _is_file_or_option(args[0]):
            args = [_question(args), *args]
        return super().parse_args(ctx, args)


def _is_file_or_option(text: str) -> bool:
    return text.startswith("-") or "/" in text or bool(Path(text).suffix) or Path(text).exists()


def _question(args: list[str]) -> str:
    """The command whose samplers are named."""
    if _values(args, "--rotation"):
        return "judges"
    asked = {plugins().question(name) for name in listed(tuple(_values(args, "--sampler")))}
    return next((question for question in ("audits", "races") if question in asked), "repeats")


def _values(args: list[str], option: str) -> list[str]:
    following = [value for name, value in pairwise(args) if name == option]
    return following + [arg.partition("=")[2] for arg in args if arg.startswith(f"{option}=")]


@click.group(name="backtest", cls=_Backtest, epilog=EXAMPLES)
def backtest() -> None:
    """Replay recorded scores: which sampler gets how close with how many readings (scores)?"""


for _command in (repeats, judges, races, audits):
    backtest.add_command(_command)
