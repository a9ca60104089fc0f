"""evalbudget's hooks: samplers of pairs, ``evalbudget pairwise``, and the same command of both hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalbudget import hookimpl

if TYPE_CHECKING:
    import click

    from evalbudget import Sampler


@hookimpl
def evalbudget_register_samplers() -> list[type[Sampler]]:
    """The samplers of pairs."""
    from evalbudget_pairwise.samplers import Duel, UniformPairs

    return [Duel, UniformPairs]


@hookimpl
def evalbudget_add_commands(cli: click.Group) -> None:
    """``evalbudget pairwise``."""
    from evalbudget.cli import LazyCommand

    cli.add_command(
        LazyCommand("pairwise", _of_a_table, "Which answers are preferred, and is there a winner?")
    )


def _of_a_table() -> click.Command:
    from evalbudget_pairwise.cli import pairwise

    return pairwise


@hookimpl
def evalbudget_add_commands_to(name: str, group: click.Group) -> None:
    """``evalbudget inspect pairwise`` and ``evalbudget lm-eval pairwise``."""
    if name == "inspect":
        from evalbudget_pairwise.inspect.command import pairwise

        group.add_command(pairwise)
    elif name == "lm-eval":
        from evalbudget_pairwise.lm_eval.command import pairwise_command

        group.add_command(pairwise_command)
