"""Cells that somebody else chose: a run that goes on from readings alone buys what it would have bought."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from tests.claims import variant

from evalbudget import Budget, Cell, Design, Reading
from evalbudget.book import Book
from evalbudget.cells import Planned
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.samplers import Auto, RepeatSampler, Uniform
from evalbudget.store import Address

ITEMS, BUDGET = 12, 240


class Bought(NamedTuple):
    phase: int
    item: int
    attempt: int
    value: float | None


def reply(item: int, attempt: int, broken: tuple[int, ...], failing: float) -> float | None:
    """The same whenever it is asked; None if the call fails."""
    rng = np.random.default_rng([item, attempt])
    if item in broken or rng.random() < failing:
        return None
    return float(np.clip(rng.normal(5.0, 0.3 + item % 3), 0.0, 10.0))


def fresh(until: float | None) -> RepeatSampler:
    sampler = Auto(Design.of_items(ITEMS), budget=BUDGET)
    if until is not None:
        sampler.stop_when_known(until, (0.0, 10.0))
    return sampler


def buy(book: Book, most: int, broken: tuple[int, ...], failing: float) -> list[Bought]:
    found: list[Bought] = []
    while len(found) < most and (requests := book.trade((), 1)):
        (request,) = requests
        item, attempt = request.cell.item, book.attempt(request)
        value = reply(item, attempt, broken, failing)
        book.trade([Reading(request, value)], 0)
        found.append(Bought(request.phase or 0, item, attempt, value))
    return found


def planned(cells: list[Bought], phase: int) -> Planned:
    item = np.array([each.item for each in cells], np.int64)
    return Planned(np.zeros_like(item), item, phase, None)


def adopted(bought: list[Bought], until: float | None) -> Book:
    """A new book that is handed what an earlier one bought, phase by phase, and answered in any order."""
    book = Book(fresh(until), Budget(BUDGET))
    came: list[Reading] = []
    for phase in range(max(each.phase for each in bought) + 1):
        cells = sorted(each for each in bought if each.phase == phase)
        cells.sort(key=lambda each: each.attempt)
        requests = book.adopt(planned(cells, phase), [1.0] * len(cells), [each.attempt for each in cells])
        came += [Reading(r, each.value) for r, each in zip(requests, cells, strict=True)]
    random.Random(3).shuffle(came)
    book.trade(came, 0)
    return book


@pytest.mark.parametrize("killed", [15, variant(40), 90, 200])
@pytest.mark.parametrize(
    ("broken", "failing", "until"),
    [((), 0.0, None), ((), 0.15, None), ((3,), 0.0, None), ((), 0.1, 2.0)],
)
def test_it_goes_on_as_it_would_have(
    killed: int, broken: tuple[int, ...], failing: float, until: float | None
) -> None:
    whole = buy(Book(fresh(until), Budget(BUDGET)), BUDGET, broken, failing)
    before = whole[:killed]
    book = adopted(before, until)
    assert book.spent == killed
    after = buy(book, BUDGET, broken, failing)

    def entries(bought: list[Bought]) -> list[tuple[int, int]]:
        return sorted((each.phase, each.item) for each in bought if each.value is not None)

    assert entries([*before, *after]) == entries(whole)
    assert book.closed == tuple(Cell(item=item) for item in broken if killed > 15 or until is None)


@pytest.mark.parametrize("fails", [True, False])
def test_more_than_is_planned_counts_and_what_fails_of_it_is_not_asked_again(fails: bool) -> None:
    book = Book(Uniform(Design.of_items(2)), Budget(20))
    four = book.adopt(planned([Bought(0, 0, n, None) for n in range(4)], 0), [1.0] * 4, range(4))
    assert book.free == 16
    book.trade([Reading(four[0], None if fails else 1.0), *(Reading(r, 1.0) for r in four[1:3])], 0)
    while requests := book.trade((), 1):
        book.trade([Reading(request, 1.0) for request in requests], 0)
    assert book.spent == 19
    book.trade([Reading(four[3], 1.0)], 0)
    counts = Counter(r.request.cell.item for r in book.readings() if r.value is not None)
    assert counts == ({0: 10, 1: 9} if fails else {0: 10, 1: 10})
    assert book.finished
    assert not book.closed


def test_what_is_under_way_elsewhere_is_waited_for() -> None:
    """It is held in full, also where the budget does not pay for it."""
    book = Book(Uniform(Design.of_items(3)), Budget(3))
    held = book.adopt(planned([Bought(0, item, 0, None) for item in range(3)], 0), [2.0, 2.0, 0.0], [0, 5, 0])
    assert book.free == -1
    assert not book.trade((), 1)
    assert not book.finished
    assert [book.attempt(request) for request in held] == [0, 5, 0]
    assert not book.trade([Reading(request, 1.0) for request in held], 3)
    assert book.finished


def test_only_a_book_that_nobody_shares_and_that_has_planned_nothing_adopts(tmp_path: Path) -> None:
    cells = planned([Bought(0, 0, 0, None)], 0)
    book = Book(Uniform(Design.of_items(2)), Budget(9))
    book.adopt(cells, [1.0], [0])
    book.adopt(cells, [1.0], [1])
    book.trade((), 1)
    kept = Book(Uniform(Design.of_items(2)), Budget(9), Address(path=tmp_path / "book.db"))
    for each in (book, kept):
        with pytest.raises(InvalidInputError, match="adopted by a book that nobody shares, before it plans"):
            each.adopt(cells, [1.0], [2])
    kept.close()
