"""Flags as options of click."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from evalbudget.flags import Flag

_Decorated = TypeVar("_Decorated", bound=Callable[..., Any])


def options_of(
    flags: Iterable[Flag], spelled: Callable[[Flag], str] = lambda flag: flag.option
) -> Callable[[_Decorated], _Decorated]:
    """Decorates a command: one option per flag, in this order, given as an argument of the flag's name.

    Args:
        flags: of the command.
        spelled: how the host that the command stands beside spells flags.
    """

    def decorate(command: _Decorated) -> _Decorated:
        for flag in reversed(list(flags)):
            command = option_of(flag, spelled(flag))(command)
        return command

    return decorate


def option_of(flag: Flag, spelled: str, **settings: Any) -> Callable[[_Decorated], _Decorated]:
    """One flag, with whatever else click shall know of it."""
    if flag.switch:
        return click.option(spelled, flag.name, is_flag=True, help=flag.help, **settings)
    return click.option(
        spelled,
        flag.name,
        type=flag.type,
        multiple=flag.repeated,
        metavar=flag.metavar,
        help=flag.help,
        **settings,
    )
