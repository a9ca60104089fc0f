"""A model that is withdrawn, and cells that cost nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.races.worlds import answered, buy, design

from evalbudget import Budget
from evalbudget.book import Book
from evalbudget.errors import BudgetError
from evalbudget.races.samplers import UCBE
from evalbudget.store import Address

GONE = "its task ended"
ONES = np.ones((3, 30))


def opened(path: Path) -> Book:
    """Ten items of each of three models first, then ten of one model at a time."""
    sampler = UCBE(design(3, 30), batch=10, seed=4)
    return Book(sampler, Budget(1000), Address(path=path))


@pytest.fixture
def books(tmp_path: Path) -> Iterator[tuple[Book, Book]]:
    """Two processes' on the same file."""
    with closing(opened(tmp_path / "book.db")) as mine, closing(opened(tmp_path / "book.db")) as other:
        yield mine, other


def test_it_is_asked_nothing_more_by_anybody(books: tuple[Book, Book]) -> None:
    mine, other = books
    had = mine.trade((), 6), other.trade((), 6)
    mine.withdraw(1, GONE)
    for book, requests in zip(books, had, strict=True):
        book.trade(answered(requests, ONES), 0)
    later = [reading for book in (other, mine) for reading in buy(book, ONES, 20)] + buy(other, ONES)
    assert {reading.request.cell.model for reading in later} == {0, 2}
    assert len(later) + sum(map(len, had)) == 30 + 30 + sum(r.cell.model == 1 for r in (*had[0], *had[1]))
    assert not mine.trade((), 1)
    assert mine.finished
    assert other.finished


def test_what_was_under_way_counts(books: tuple[Book, Book]) -> None:
    mine, other = books
    asked = mine.trade((), 6)
    other.withdraw(1, GONE)
    mine.trade(answered(asked, ONES), 0)
    mine.look()
    race = mine.sampler
    assert isinstance(race, UCBE)
    assert [race.n_read(model) for model in range(3)] == [2, 2, 2]
    assert mine.spent == 6
    assert race.lost == {1}


def test_what_is_open_of_it_is_not_missing_and_holds_nobody_up(books: tuple[Book, Book]) -> None:
    mine, _ = books
    asked = mine.trade((), 30)
    mine.give_back([request for request in asked[6:] if request.cell.model == 1])
    left = [request for request in asked if request in mine.held]
    mine.withdraw(1, GONE)
    failed = answered(left[:1], np.full((3, 30), np.nan))
    again = mine.trade([*failed, *answered(left[1:], ONES)], 30)
    assert [request.cell for request in again] == [left[0].cell]
    after = mine.trade(answered(again, ONES), 30)
    assert len(after) == 10
    assert {request.cell.model for request in after} <= {0, 2}
    cells = mine.cells()
    mine.look()
    assert not cells.wanted[cells.model == 1].any()
    assert (cells.model == 1).sum() == 10
    assert mine.closed == ()
    assert isinstance(mine.sampler, UCBE)
    assert mine.sampler.closed == ()


def test_withdrawn_again_it_stays_as_it_was(books: tuple[Book, Book], tmp_path: Path) -> None:
    mine, other = books
    buy(mine, ONES, 7)
    mine.withdraw(1, GONE)
    buy(mine, ONES, 5)
    for book in (other, mine):
        book.withdraw(1, "once more")
        assert book.cells().withdrawn.tolist() == [-1, 7, -1]
    other.withdraw(2, GONE)
    mine.trade((), 0)
    assert mine.cells().withdrawn.tolist() == [-1, 7, 12]
    with closing(opened(tmp_path / "book.db")) as late:
        assert late.cells().withdrawn.tolist() == [-1, 7, 12]


def test_cells_that_cost_nothing_are_handed_out_when_nothing_is_left() -> None:
    costs = {"all": 1.0}
    sampler = UCBE(design(3, 30), batch=1)
    with closing(Book(sampler, Budget(4), most=lambda cell: costs["all"])) as book:
        assert len(buy(book, ONES)) == book.spent == 4
        assert book.finished
        costs["all"] = 0.0
        book.has_answers = True
        assert len(buy(book, ONES, 10, cost=lambda cell: 0.0)) == 10
        assert book.spent == 4
        assert len(book.readings()) == 14
        book.has_answers = False
        assert not book.trade((), 1)


def test_a_cost_of_nothing_is_refused_where_no_answers_are_known() -> None:
    with (
        closing(Book(UCBE(design(3, 30), batch=1), Budget(4), most=lambda cell: 0.0)) as book,
        pytest.raises(BudgetError, match="the highest cost of a call is 0"),
    ):
        book.trade((), 1)
