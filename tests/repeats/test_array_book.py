"""Replays by whole rounds buy what a book buys reading by reading."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evalbudget import Budget, Cell, Design, Reading, Sampler
from evalbudget.book import Book
from evalbudget.errors import InvalidInputError, SamplerError
from evalbudget.hooks._plugins import plugins
from evalbudget.races.samplers import Race
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.samplers import Note, Readings, Round, Sample, Uniform, Wait

DESIGN, BUDGET = Design.of_items(7), 84


def made(name: str) -> Sampler:
    cls: Any = plugins().sampler(name)
    more = {"t0": 2} if name == "robin-hood" else {"pilot": 2} if name == "robin" else {}
    return cls(DESIGN, seed=3, **more)


def score(cell: Cell) -> float:
    return float(np.random.default_rng([cell.item, cell.epoch]).integers(0, 10))


def price(cell: Cell) -> float:
    return 1.0 + cell.item % 7


@pytest.mark.parametrize("weighs", [False, True])
@pytest.mark.parametrize("name", [name for name in plugins().samplers if name != "sample"])
def test_it_buys_what_a_book_buys(name: str, weighs: bool) -> None:
    whole, sampler = made(name), made(name)
    for each in (whole, sampler):
        if weighs:
            each.weigh_costs(4.0 * BUDGET)
    rounds = ArrayBook(whole)
    while rounds.n < BUDGET and (asked := rounds.ask(BUDGET - rounds.n)) is not None:
        cells = [Cell(0, *place) for place in zip(asked.item.tolist(), asked.epoch.tolist(), strict=True)]
        cost = np.array([price(cell) if weighs else 1.0 for cell in cells])
        rounds.tell(np.array([score(cell) for cell in cells]), cost)
    book, n = Book(sampler, Budget(10.0 * BUDGET)), 0
    while n < BUDGET:
        (request,) = book.trade((), 1)
        n += 1
        paid = price(request.cell) if weighs else 1.0
        book.trade([Reading(request, score(request.cell), paid)], 0)
    found, cells = rounds.bought(), book.cells()
    order = np.lexsort((cells.epoch[:BUDGET], cells.item[:BUDGET]))
    assert found.item.tolist() == cells.item[order].tolist()
    assert found.epoch.tolist() == cells.epoch[order].tolist()
    assert found.value.tolist() == cells.value[order].tolist()


def test_it_ends_with_its_sampler() -> None:
    book = ArrayBook(Sample(DESIGN, once=True))
    while (asked := book.ask(100)) is not None:
        book.tell(np.zeros(asked.item.size))
    assert book.n == DESIGN.n_items
    assert book.stop_reason == "every item that can be scored was read once"


def test_who_does_not_repeat_items_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="'race' does not repeat items of one model"):
        ArrayBook(Race(Design(DESIGN.items, ("a", "b"))))


@pytest.mark.parametrize(
    ("nothing", "told"), [("waits", "nothing under way"), ("empty", "empty round twice")]
)
def test_a_sampler_that_does_nothing_is_found_out(nothing: str, told: str) -> None:
    class Idle(Uniform):
        name = "idle"

        def plan(self, table: Readings, last: Note | None) -> Any:
            return Wait(1) if nothing == "waits" else Round(np.zeros(0, np.int64), Note(0))

    with pytest.raises(SamplerError, match=f"'idle' .*{told}"):
        ArrayBook(Idle(DESIGN)).ask(1)
