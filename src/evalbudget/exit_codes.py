"""How commands end: one list for all of them, and the same on every host."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum


class ExitCode(IntEnum):
    """What a command ends with. Commands that only pass on to a host end with the host's own."""

    DONE = 0
    """What was asked for is there: a verdict of "not worse", an estimate, a report."""
    NO = 1
    """The answer is no: worse, over without a verdict, a problem where ``--strict`` looks for one."""
    BAD_INPUT = 2
    """Refused; the message says what to do."""
    UNDECIDED = 3
    """Not known yet: items or budget ended before what was asked for was proved, or labels are wanted."""
    FAILED = 4
    """It could not be evaluated: a provider is down, the host ended in an error, nothing was scored."""
    INTERRUPTED = 130
    """By Ctrl-C or SIGTERM."""


_FIRST = (ExitCode.UNDECIDED, ExitCode.NO, ExitCode.FAILED, ExitCode.BAD_INPUT, ExitCode.INTERRUPTED)


def most_urgent(codes: Iterable[int]) -> int:
    """What a command ends with that did several things: tasks, models, races.

    Interrupted tells most, then refused, then could not be evaluated, then "no", then undecided; it is done
    if all are. A host's own code is passed on as it is, and tells as much as "could not be evaluated".

    Args:
        codes: of each of them.
    """

    def urgency(code: int) -> int:
        if code == ExitCode.DONE:
            return -1
        return _FIRST.index(ExitCode(code if code in _FIRST else ExitCode.FAILED))

    return max(codes, key=urgency, default=ExitCode.DONE)


_MEANINGS = {
    ExitCode.DONE: "done",
    ExitCode.NO: "the answer is no",
    ExitCode.BAD_INPUT: "bad input",
    ExitCode.UNDECIDED: "undecided",
    ExitCode.FAILED: "could not be evaluated",
    ExitCode.INTERRUPTED: "interrupted",
}


def codes_for_help(**meanings: str) -> str:
    """The list for the end of ``--help``.

    Args:
        meanings: what a code means for this command, by its name in small letters; empty if it has no such.
    """
    shown = {code: meanings.get(code.name.lower(), meaning) for code, meaning in _MEANINGS.items()}
    return f"Exit codes: {'; '.join(f'{code:d} {meaning}' for code, meaning in shown.items() if meaning)}.\n"
