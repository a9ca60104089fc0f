"""One real command to be disturbed, and where to read what it kept."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evalbudget.prices import Price
from loopback import Server


@dataclass(frozen=True, slots=True)
class Cap:
    """A budget in money.

    Attributes:
        dollars: that may be spent.
        prices: of each model.
        call: what one call costs at most.
        calls: about how many it pays.
    """

    dollars: float
    prices: Mapping[str, Price]
    call: float
    calls: int


@dataclass(frozen=True)
class Plan:
    """A command that spends a budget.

    Attributes:
        command: to start with.
        again: the command that goes on with what is there; the same, on most.
        done: whether it is over, given its exit code.
        kept: everything that logs and records hold, as text.
        spent: what they say was spent, in calls or dollars; None if they do not say.
        billed: groups of models, and how many calls of each the budget pays.
        recorded: models whose answers must be in ``kept``.
        caught: answers that a kill -9 may catch on their way.
        window: seconds that they may have been on it.
        cap: what all calls may cost, in dollars, by the prices of each model; None where calls are counted.
        drains: whether Ctrl-C and SIGTERM wait for what is on its way.
        environment: beside that of this process.
    """

    command: list[str]
    again: Callable[[], list[str]]
    done: Callable[[int], bool]
    kept: Callable[[], str]
    spent: Callable[[], float | None]
    billed: Mapping[tuple[str, ...], int]
    recorded: tuple[str, ...]
    caught: int
    window: float
    drains: bool
    environment: Mapping[str, str] = field(default_factory=dict)
    cap: Cap | None = None


Prepare = Callable[[Path, Server, random.Random], Plan]


@dataclass(frozen=True)
class Capability:
    """What is disturbed: its host, its name, and how it is set up in a folder."""

    host: str
    name: str
    prepare: Prepare
