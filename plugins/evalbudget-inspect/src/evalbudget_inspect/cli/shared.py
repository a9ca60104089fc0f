"""What our commands have in common: inspect's flags pass through, ours in a wrong place do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalbudget.flags import DRY_RUN, Flag, refuse_elsewhere, refuse_misspelled

PASSED_ON: dict[str, Any] = {"ignore_unknown_options": True, "help_option_names": ["-h", "--help"]}
"""Settings of a command whose other flags are the host's."""


def refuse_misplaced(
    arguments: Sequence[str],
    taken: Sequence[Flag],
    *others: tuple[Sequence[Flag], str],
    command: str = "eval",
) -> None:
    """Refuse flags of ours that this command does not take, that are misspelled, or have other names now.

    Args:
        arguments: what is about to go to the host.
        taken: flags of this command.
        others: flags of other commands, with the end of the sentence that begins with one of them.
        command: of the host, which takes the arguments.

    Raises:
        InvalidInputError: there is one, and it is none of the host's.
    """
    from evalbudget_inspect.host.private import host_cli

    params = host_cli.commands[command].params
    theirs = {option for param in params for option in (*param.opts, *param.secondary_opts)} | {"--help"}
    mine = {flag.name for flag in taken}
    for flags, why in others:
        unknown = [flag for flag in flags if flag.name not in mine and flag.option not in theirs]
        refuse_elsewhere(arguments, unknown, why)
    refuse_misspelled(arguments, [flag.option for flag in (*taken, DRY_RUN)], theirs)
