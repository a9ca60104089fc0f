"""The server's bill against what a run kept: answers lost, bought twice, and over the budget."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evalbudget.prices import Price, Usage
from loopback import Asked, Served

STAMP = re.compile(r"\[reply (\d+)\]")
JUST_ARRIVED = 2.0
"""Seconds within which a client may still be at work on a reply when it is killed."""


def stamped(answer: Callable[[Asked], str]) -> Callable[[Asked], str]:
    """Answers that carry a number each, by which a record is searched for them."""
    numbers = iter(range(1, 10**9))

    def answered(asked: Asked) -> str:
        return f"{answer(asked)} [reply {next(numbers)}]"

    return answered


@dataclass(frozen=True, slots=True)
class Stop:
    """A signal that was sent.

    Attributes:
        number: of the signal.
        at: when, by ``time.monotonic``.
        excused: how many calls it may have caught on their way, whose answers may be lost.
        window: seconds before it in which they were sent.
    """

    number: int
    at: float
    excused: int
    window: float


@dataclass(frozen=True, slots=True)
class Account:
    """What must be 0."""

    lost: int = 0
    twice: int = 0
    over: float = 0
    hung: int = 0

    @property
    def clean(self) -> bool:
        """Whether it is."""
        return not (self.lost or self.twice or self.over or self.hung)


def stamp_of(served: Served) -> str | None:
    """The number of an answer that reached its client in time."""
    late = served.fault is not None and served.fault.delay > 0.0
    found = STAMP.search(served.text)
    return found[1] if found and served.status == 200 and not late else None


def missing(served: Iterable[Served], kept: str, stops: Sequence[Stop]) -> tuple[list[Served], list[Served]]:
    """Answers that reached the client and are not in what was kept.

    Returns:
        Those that should be there, and those that were on their way when the process was stopped.
    """
    known = set(STAMP.findall(kept))
    gone = [one for one in served if (stamp := stamp_of(one)) is not None and stamp not in known]
    excused: list[Served] = []
    for stop in stops:
        caught = [one for one in gone if stop.at - stop.window <= one.at and one not in excused]
        # replies that were sent after the signal found nobody; the next process starts seconds later
        caught = [one for one in caught if one.at <= stop.at + JUST_ARRIVED]
        excused += sorted(caught, key=lambda one: -one.at)[: stop.excused]
    return [one for one in gone if one not in excused], excused


def twice(served: Iterable[Served], excused: Iterable[Served]) -> list[Served]:
    """Answers bought again although one had reached the client: same model, same prompt, same seed."""
    lost = Counter(_attempt(one) for one in excused)
    bought: Counter[tuple[str, str, object]] = Counter()
    again = []
    for one in served:
        if stamp_of(one) is not None:
            bought[_attempt(one)] += 1
            if bought[_attempt(one)] > 1 + lost[_attempt(one)]:
                again.append(one)
    return again


def _attempt(one: Served) -> tuple[str, str, object]:
    return one.model, one.prompt, one.body.get("seed")


def dollars(served: Iterable[Served], prices: Mapping[str, Price]) -> float:
    """What the provider bills."""
    return sum(
        prices[one.model].cost(Usage(one.usage["prompt_tokens"], one.usage["completion_tokens"]))
        for one in served
        if one.billed and one.usage and one.model in prices  # a killed client may not have said which
    )


def over(served: Iterable[Served], models: Sequence[str], budget: int, spent: float | None) -> float:
    """Calls of these models on the bill beyond the budget, or beyond what the record counts as spent."""
    paid = sum(one.billed and one.model in models for one in served)
    return max(0, paid - budget, 0 if spent is None else paid - spent)
