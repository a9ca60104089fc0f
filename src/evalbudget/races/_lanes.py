"""What a race's hosts are given and give back: cells, those that are known, and what each arm has cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from evalbudget import Request
from evalbudget.run import Tally

Key = tuple[str, int]
"""Item id, and epoch as hosts count, from 1."""

CUT_OFF = "cut off: its worker was started anew"
SILENT = "its worker gave no sign of life"

_WIDTH = 10  # cells an arm is given at once, where nobody said how many it runs


@dataclass(frozen=True, slots=True)
class KnownCell:
    """One cell that an earlier attempt paid for.

    Attributes:
        key: sample id and epoch.
        value: its score; None if it failed.
        attempts: how often it was run; all of them cost.
        again: the host runs it again, since it was cancelled on the way.
        error: why it failed.
        sample: the host's own name of it, by which a bill knows it.
    """

    key: Key
    value: float | None
    attempts: int
    again: bool = False
    error: str | None = None
    sample: str = ""


@dataclass(slots=True, eq=False)
class Flight:
    """A cell that is with the host.

    Attributes:
        item: index in the design.
        request: that asked for it; None while nothing did: the host runs again what was cancelled.
        promised: what is put aside for it beside what the book holds.
        begun: of that, what the book knows that may be billed by now.
        attempts: at it that earlier runs paid for.
        started: the host works on it.
        paid: attempts at most that are paid for.
        failed: attempts in this run that failed so far.
    """

    item: int
    request: Request | None = None
    promised: float = 0.0
    begun: float = 0.0
    attempts: int = 0
    started: bool = False
    paid: float = math.inf
    failed: int = 0


@dataclass(slots=True, eq=False)
class Lane:
    """What one arm has cost and brought.

    Attributes:
        name: of the arm.
        width: cells to keep with the host at once; None to watch it.
        running: cells the host works on.
        evaluations: that were paid for, whether or not they brought a score.
        tally: its scores, failures and attempts so far.
        left: why nothing more can be asked of it from outside; None while it takes part.
        absent: it does not run this time; what it answered earlier is known.
        flights: cells with the host.
    """

    name: str
    width: int | None = None
    running: int = 0
    evaluations: float = 0.0
    tally: Tally = field(default_factory=Tally)
    left: str | None = None
    absent: bool = False
    flights: dict[Key, Flight] = field(default_factory=dict)
    peak: int = 1

    @property
    def room(self) -> int:
        """How many more cells to give it now."""
        if self.left is not None or self.absent:
            return 0
        width = self.width or max(_WIDTH, self.peak + max(1, self.peak // 8))
        return max(0, width - len(self.flights))

    def as_json(self) -> dict[str, Any]:
        """What others know of it."""
        tally = {each.name: getattr(self.tally, each.name) for each in fields(Tally)}
        tally |= {"errors": dict(self.tally.errors), "unread": dict(self.tally.unread)}
        again = [[*key, flight.attempts] for key, flight in self.flights.items() if flight.promised]
        return {"left": self.left, "evaluations": self.evaluations, "again": again, **tally}

    def take(self, so_far: Mapping[str, Any]) -> None:
        """What its process says of it."""
        given = dict(so_far)
        self.left, self.evaluations = given.pop("left"), float(given.pop("evaluations"))
        del given["again"]
        self.tally = Tally(**given)


@dataclass(frozen=True, slots=True)
class Entry:
    """An arm that a process runs, of a race that several processes share.

    Attributes:
        arm: its name, the same wherever it runs.
        known: what it answered before.
        unread: evaluations that earlier attempts paid for and nobody read.
    """

    arm: str
    known: Sequence[KnownCell] = ()
    unread: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A cell for the host to run.

    Attributes:
        arm: index of the arm.
        key: sample id and epoch.
    """

    arm: int
    key: Key
