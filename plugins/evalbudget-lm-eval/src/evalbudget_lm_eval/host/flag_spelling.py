"""Our flags as lm-eval spells its own: with underscores; hyphens are understood."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalbudget.flags import Flag, refuse_misspelled


def spelled(flag: Flag) -> str:
    """As it is shown and typed."""
    return "--" + flag.option.removeprefix("--").replace("-", "_")


def as_spelled(arguments: Sequence[str], flags: Iterable[Flag]) -> list[str]:
    """The arguments, those of our flags with underscores; all others unchanged."""
    ours = {flag.option: spelled(flag) for flag in flags}
    changed = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        changed.append(f"{ours.get(name, name)}{equals}{value}")
    return changed


def refuse_misspelled_flags(arguments: Sequence[str], flags: Iterable[Flag]) -> None:
    """Refuse what is most like one of these flags, and is no option of the host's ``run``.

    Raises:
        InvalidInputError: there is one.
    """
    from evalbudget_lm_eval.host.private import HarnessCLI

    theirs = HarnessCLI()._subparsers.choices["run"]._option_string_actions
    ours = list(flags)
    names = [argument.partition("=")[0] for argument in as_spelled(arguments, ours)]
    # the host takes the beginning of an option for the option
    begun = [name for name in names if any(option.startswith(name) for option in theirs)]
    refuse_misspelled(names, map(spelled, ours), [*theirs, *begun])


def is_one_of(argument: str, flags: Iterable[Flag]) -> bool:
    """Whether a word of the command line is one of these flags."""
    name = argument.partition("=")[0]
    return any(name in (flag.option, spelled(flag)) for flag in flags)
