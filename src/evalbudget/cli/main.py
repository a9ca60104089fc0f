"""Entry point of ``evalbudget``: built-in commands, then those of the plugins."""

from __future__ import annotations

import sys
from typing import Any

import click

from evalbudget._version import __version__
from evalbudget.cli.audit import audit
from evalbudget.cli.backtest import backtest
from evalbudget.cli.plan import plan
from evalbudget.cli.plugins import plugins_command
from evalbudget.cli.report import report
from evalbudget.cli.suggest import SuggestingGroup
from evalbudget.errors import EvalbudgetError
from evalbudget.flags import renamed
from evalbudget.hooks.plugins import plugins

EXAMPLES = """\b
Examples:
  evalbudget inspect eval my_task.py --model openai/gpt-5 --budget 2000
  evalbudget backtest logs/ --sampler uniform,auto --budget 10x,20x
  evalbudget plan pilot.npz --half-width 0.1
  evalbudget report logs/ --picture leaderboard.png
  evalbudget audit serve audit.sqlite
  evalbudget plugins
"""


class _Group(SuggestingGroup):
    """Loads plugins' commands when one is asked for; suggests near names; prints our errors plainly."""

    _extended = False

    def _extend(self) -> None:
        if not self._extended:
            self._extended = True
            try:
                plugins().add_commands(self)
            except EvalbudgetError as ex:  # --help comes here before invoke() could turn it into a refusal
                raise Refusal(str(ex)) from ex

    def list_commands(self, ctx: click.Context) -> list[str]:
        self._extend()
        return super().list_commands(ctx)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        command = super().get_command(ctx, cmd_name)
        if command is None:
            self._extend()
            command = super().get_command(ctx, cmd_name)
        return command

    def hint(self, name: str) -> str:
        if name in ("inspect", "lm-eval"):
            return f" The command {name!r} comes with its plugin: pip install 'evalbudget[{name}]'."
        return ""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except EvalbudgetError as ex:
            raise Refusal(str(ex)) from ex
        except click.NoSuchOption as ex:
            told = renamed(ex.option_name)
            if told:
                raise click.UsageError(f"{ex.option_name} {told}", ex.ctx) from None
            raise


class Refusal(click.ClickException):
    """Bad input: the message, and exit code 2."""

    exit_code = 2


@click.group(cls=_Group, epilog=EXAMPLES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="evalbudget")
def cli() -> None:
    """Decides which evaluation score to buy next, and says what the bought scores prove."""


cli.add_command(audit)
cli.add_command(backtest)
cli.add_command(plan)
cli.add_command(report)
cli.add_command(plugins_command)


def main() -> None:
    """Run the command line."""
    cli.main(args=sys.argv[1:], prog_name="evalbudget")
