"""What a user can say of a run: each thing once, for every command line, inspect's ``-T`` and Python."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalbudget.errors import InvalidInputError


@dataclass(frozen=True, slots=True)
class Flag:
    """One thing to say, with one name everywhere.

    Attributes:
        name: in Python and after inspect's ``-T``; with hyphens on a command line, unless ``spelled``.
        help: one sentence.
        metavar: stands for the value in help.
        type: of the value.
        repeated: may be given several times.
        switch: has no value.
        spelled: on a command line, where hosts have a flag of that name already.
    """

    name: str
    help: str
    metavar: str | None = None
    type: type[str | int | float] = str
    repeated: bool = False
    switch: bool = False
    spelled: str = ""

    @property
    def option(self) -> str:
        """As it is typed."""
        return "--" + (self.spelled or self.name).replace("_", "-")


SAMPLER_SEED = Flag("seed", "Seed of the sampler.  [default: 0]", "N", int, spelled="sampler_seed")
SAMPLER_OPTION = Flag(
    "sampler_options",
    "An option of the sampler; one flag for each.",
    "NAME=VALUE",
    repeated=True,
    spelled="sampler_option",
)
PRICES = Flag(
    "prices",
    "Prices for a budget in money: a file of YAML.",
    "PATH",
)
RISK = Flag(
    "risk",
    "Accepted chance that the last calls exceed a budget in money or tokens; more of it is used then.  "
    "[default: 0, never]",
    "P",
    float,
)
DRY_RUN = Flag(
    "dry_run",
    "Say what would be bought, at least and at most, and what would be refused; no call is made.",
    switch=True,
)
MISSING = Flag(
    "missing",
    "What an item without a score counts as: the worst for what is claimed, zero (a wrong answer), or drop "
    "(only items that both models have).  [default: worst]",
    "worst|zero|drop",
)
LOWER_IS_BETTER = Flag("lower_is_better", "Lower scores are better; otherwise higher ones are.", switch=True)
JSON = Flag(
    "json_path",
    "Write the leaderboard as JSON; - writes it to standard output, and nothing else.",
    "PATH",
    spelled="json",
)


def names_of(flags: Iterable[Flag]) -> tuple[str, ...]:
    """Names that are arguments of a task as well: all but what is read from several flags, and files."""
    return tuple(flag.name for flag in flags if not flag.repeated and not flag.name.endswith("_path"))


def said_in(call: Mapping[str, Any], flags: Iterable[Flag]) -> dict[str, Any]:
    """What a call in Python says of these flags, as a command would say it.

    Args:
        call: the arguments of a function, by name; those of which no flag speaks are left out.
        flags: of the command that does the same.
    """
    given = {name: call[name] for name in names_of(flags) if name in call}
    return {name: str(value) if isinstance(value, Path) else value for name, value in given.items()}


def refuse_elsewhere(arguments: Sequence[str], flags: Iterable[Flag], why: str) -> None:
    """Refuse flags of another command of ours, which the host would not know.

    Args:
        arguments: what is about to go to the host.
        flags: of the other command.
        why: ends the sentence that begins with the flag.

    Raises:
        InvalidInputError: one of them is among the arguments.
    """
    known = {flag.option for flag in flags}
    for argument in arguments:
        name = argument.partition("=")[0]
        if name.replace("_", "-") in known:
            raise InvalidInputError(f"{name} {why}")


def refuse_misspelled(arguments: Sequence[str], own: Iterable[str], theirs: Collection[str]) -> None:
    """Refuse what is most like an option of ours: the host would suggest one of its own.

    Args:
        arguments: what is about to go to the host.
        own: options of this command that are ours, as they are spelled here.
        theirs: options that the host knows.

    Raises:
        InvalidInputError: an argument is an option that nobody knows, and one of ours is nearest to it.
    """
    ours = list(own)
    for argument in arguments:
        name = argument.partition("=")[0]
        if not name.startswith("--") or name in ("--", *ours, *theirs):
            continue
        near = difflib.get_close_matches(name, [*ours, *theirs], n=1, cutoff=0.7)
        if near and near[0] in ours:
            raise InvalidInputError(f"there is no option {name}. Did you mean {near[0]}?")


def sampler_options(
    texts: Iterable[str], own: Iterable[Flag], flag: str = SAMPLER_OPTION.option
) -> dict[str, Any]:
    """Read ``delta=0.1``, one text per option.

    Args:
        texts: NAME=VALUE each.
        own: what has a flag of its own.
        flag: as it is spelled here.

    Raises:
        InvalidInputError: one is not NAME=VALUE, is given twice, or has a flag of its own.
    """
    flags: Mapping[str, Flag] = {each.name: each for each in own}
    options: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.replace("-", "_")
        if not equals or not name:
            raise InvalidInputError(f"{flag} {text!r} is not NAME=VALUE; for example delta=0.1")
        if name in flags:
            raise InvalidInputError(
                f"{name} is not an option of the sampler; give it by {flags[name].option}"
            )
        if name in options:
            raise InvalidInputError(f"{flag} {name} is given twice; give it once")
        options[name] = _value(value)
    return options


def _value(text: str) -> int | float | bool | str:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
