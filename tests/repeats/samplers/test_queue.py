"""What is asked next follows from what was asked and came back, not from who looked, nor from any order."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest
from tests.claims import variant

from evalbudget import Cell, Design, Reading, Request
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.samplers import Auto, RepeatSampler, Robin, RobinHood, Sample, Uniform

N = 6
DESIGN = Design.of_items(N)
SAMPLERS: dict[str, Callable[[], RepeatSampler]] = {
    "uniform": lambda: Uniform(DESIGN),
    "robin": lambda: Robin(DESIGN, variances=[0.0, 0.1, 1.0, 3.0, 3.0, 7.5]),
    "robin-hood": lambda: RobinHood(DESIGN, t0=3),
    "sample": lambda: Sample(DESIGN),
    "once": lambda: Sample(DESIGN, once=True),
    "auto": lambda: Auto(DESIGN),
}


def adopt(one: RepeatSampler, other: RepeatSampler, rng: random.Random) -> list[Request]:
    found = []
    for _ in range(rng.randrange(2 * N)):
        cell = Cell(item=rng.randrange(N), epoch=rng.randrange(4))
        try:
            found.append(one.adopt(cell))
        except InvalidInputError:  # it was asked before
            continue
        assert other.adopt(cell) == found[-1]
    return found


def look(sampler: RepeatSampler) -> None:
    _ = sampler.due, sampler.closed
    assert sampler.ask(1, eligible=lambda cell: False) == ()


@pytest.mark.parametrize("seed", [*range(4), *map(variant, range(4, 12))])
@pytest.mark.parametrize("name", SAMPLERS)
def test_neither_looks_nor_the_order_of_failures_change_what_is_asked(name: str, seed: int) -> None:
    rng = random.Random(seed)
    one, other = SAMPLERS[name](), SAMPLERS[name]()
    rate, flying = rng.choice([0.1, 0.5, 0.9]), adopt(one, other, rng)
    for _ in range(60):
        look(other)
        some = {item for item in range(N) if rng.random() < 0.7}
        n, eligible = rng.randrange(1, 9), rng.choice([None, lambda cell, some=some: cell.item in some])
        asked = one.ask(n, eligible=eligible)
        assert other.ask(n, eligible=eligible) == asked
        flying += [*asked, *(adopt(one, other, rng) if rng.random() < 0.1 else ())]
        rng.shuffle(flying)
        came, flying = flying[::2], flying[1::2]
        told = [Reading(each, None if rng.random() < rate else rng.gauss(0.0, 1.0)) for each in came]
        one.tell(told)
        for reading in reversed(told):
            other.tell([reading])
            if reading is told[len(told) // 2]:
                look(other)
        assert one.closed == other.closed


def test_that_everything_fails_takes_no_time_that_grows_with_the_square() -> None:
    n = 20_000
    sampler = Uniform(Design.of_items(n))
    asked = sampler.ask(n)
    sampler.tell(Reading(request, None) for request in asked)
    begun = time.process_time()
    assert sampler.ask(1) == ()
    assert time.process_time() - begun < 2.0
    assert len(sampler.closed) == n
