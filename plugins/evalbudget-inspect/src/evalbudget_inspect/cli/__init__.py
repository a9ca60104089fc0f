"""``evalbudget inspect ...``: inspect's own command line, with a sampler in front of the task."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import click

from evalbudget.cli import PluginsGroup, say, show_gate
from evalbudget.exit_codes import codes_for_help
from evalbudget.flags import DRY_RUN
from evalbudget_inspect.cli.audit import audit
from evalbudget_inspect.cli.eval import budgeted_command
from evalbudget_inspect.cli.gate import gate
from evalbudget_inspect.cli.leaderboard import leaderboard
from evalbudget_inspect.cli.race import race

EXAMPLES = """\b
Examples:
  evalbudget inspect eval my_task.py --model openai/gpt-5 --budget 2000
  evalbudget inspect race my_task.py --model openai/a,openai/b,openai/c --budget 5000
  evalbudget inspect audit audit.sqlite my_task.py --model a,b --score-range 1..10
  evalbudget inspect eval-retry logs/2026-01-01_my-task.eval
  evalbudget inspect eval-retry logs/2026-01-01_my-task.eval --dry-run
  evalbudget inspect view

""" + codes_for_help()


class _HostGroup(PluginsGroup):
    """Our commands first; every other subcommand is the host's, unchanged. The host takes long to import."""

    known_as = "inspect"
    unknown = "inspect has no command"

    def list_commands(self, ctx: click.Context) -> list[str]:
        from evalbudget_inspect.host.private import host_cli

        return sorted({*super().list_commands(ctx), *host_cli.list_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        ours = super().get_command(ctx, cmd_name)
        if ours is not None:
            return ours
        from evalbudget_inspect.host.private import host_cli

        theirs = host_cli.get_command(ctx, cmd_name)
        return None if theirs is None else _pass_through(cmd_name, theirs)

    def invoke(self, ctx: click.Context) -> Any:
        from evalbudget_inspect.host.refusals import refused_as_ours

        with refused_as_ours():
            return super().invoke(ctx)


@click.group(
    name="inspect",
    cls=_HostGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXAMPLES,
)
def inspect_command() -> None:
    """Run inspect-ai with a sampler deciding what is asked next.

    ``eval`` and ``eval-set`` decide which item to ask again, ``race`` which model to ask next, ``gate``
    whether a model got worse, ``audit`` which answer a human should label. All else is passed on to inspect
    unchanged.
    """


for _command in (
    budgeted_command("eval"),
    budgeted_command("eval-set"),
    race,
    gate,
    audit,
    leaderboard,
):
    inspect_command.add_command(_command)


def _pass_through(name: str, command: click.Command) -> click.Command:
    @click.command(
        name=name,
        help=command.help,
        short_help=command.get_short_help_str(),
        context_settings={"ignore_unknown_options": True, "help_option_names": []},
    )
    @click.argument("args", nargs=-1, type=click.UNPROCESSED)
    def run(args: tuple[str, ...], **_: Any) -> None:
        from evalbudget_inspect.host.run_host import run_host

        if name == "eval-retry" and DRY_RUN.option in args:
            from evalbudget_inspect.repeats.dry_retry import foresee_retry

            say(foresee_retry(command, [each for each in args if each != DRY_RUN.option]))
            return
        given: Sequence[str] = args
        if name == "eval-retry":
            from evalbudget_inspect.host.union_of_logs import join_earlier

            given = join_earlier(command, args)
        code = run_host([name, *given])
        if name == "eval-retry":
            from evalbudget_inspect.races.all_races import take_gates

            for found in take_gates():  # of a gate that goes on
                code = show_gate(found)
        sys.exit(code)

    return run
