"""A run in phases that goes on from readings alone buys what it would have bought uninterrupted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evalbudget import Cell, Design, Reading, Request
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.samplers import Auto, PhasedSampler

ITEMS, BUDGET = 12, 240
Bought = list[tuple[Request, float | None]]


def reply(cell: Cell, broken: tuple[int, ...], failing: float) -> float | None:
    """The same whenever the cell is asked; None if the call fails."""
    rng = np.random.default_rng([cell.item, cell.epoch])
    if cell.item in broken or rng.random() < failing:
        return None
    return float(np.clip(rng.normal(5.0, 0.3 + cell.item % 3), 0.0, 10.0))


def fresh(until: float | None) -> PhasedSampler:
    sampler = Auto(Design.of_items(ITEMS), budget=BUDGET)
    if until is not None:
        sampler.stop_when_known(until, (0.0, 10.0))
    return sampler


def play(sampler: PhasedSampler, most: int, broken: tuple[int, ...], failing: float) -> Bought:
    found: Bought = []
    while len(found) < most and (requests := sampler.ask(1)):
        value = reply(requests[0].cell, broken, failing)
        sampler.tell([Reading(requests[0], value)])
        found.append((requests[0], value))
    return found


def adopted(bought: Bought, until: float | None) -> PhasedSampler:
    """A fresh sampler that is handed what an earlier one bought, item by item."""
    sampler = fresh(until)
    by_item = sorted(bought, key=lambda each: (each[0].cell.epoch, each[0].cell.item))
    for request, _ in by_item:
        sampler.assume_phase(request.cell, request.phase or 0)
    requests = [sampler.adopt(request.cell) for request, _ in by_item]
    sampler.tell(Reading(r, value) for r, (_, value) in zip(requests, by_item, strict=True))
    return sampler


@pytest.mark.parametrize("killed", [15, 40, 90, 200])
@pytest.mark.parametrize(
    ("broken", "failing", "until"),
    [((), 0.0, None), ((), 0.15, None), ((3,), 0.0, None), ((), 0.1, 2.0)],
)
def test_it_goes_on_as_it_would_have(
    killed: int, broken: tuple[int, ...], failing: float, until: float | None
) -> None:
    whole = play(fresh(until), BUDGET, broken, failing)
    before = whole[:killed]
    after = play(adopted(before, until), BUDGET - len(before), broken, failing)

    def entries(bought: Bought) -> list[tuple[int | None, int]]:
        return sorted((r.phase, r.cell.item) for r, value in bought if value is not None)

    assert entries([*before, *after]) == entries(whole)


@pytest.mark.parametrize("phase", [-1, 10_000, 2**63, 10**400, 1.0, "1", True, [1]])
def test_what_a_record_calls_a_phase_and_is_none(phase: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"^phase .{1,30} is not a whole number from 0 to 9999$"):
        fresh(None).assume_phase(Cell(), phase)
