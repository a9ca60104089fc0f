"""Workers that ask some models each: cells are paid in the order of the pass, whoever has them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing

import numpy as np
import pytest
from tests.races.worlds import answered, design

from evalbudget import Budget, Request
from evalbudget.book import Book
from evalbudget.races.samplers import UCBE
from evalbudget.store import Address

ONES = np.ones((3, 30))


def opened(where: Address | None = None, *, budget: float = 1000, **more: float) -> Book:
    """Ten items of each of three models first."""
    limits = {name: (lambda value=value: value) for name, value in more.items()}
    return Book(UCBE(design(3, 30), batch=10, seed=4), Budget(budget), where, **limits)  # type: ignore[arg-type]


@pytest.fixture
def books(store: str) -> Iterator[tuple[Book, Book]]:
    """Two processes' on the same store, whose budget ends within the first pass."""
    where = Address.parse(store)
    with closing(opened(where, budget=30)) as mine, closing(opened(where, budget=30)) as other:
        yield mine, other


def room(hands: Mapping[int, int]) -> Callable[[int], int]:
    """For cells of each model that a worker asks."""
    return lambda model: hands.get(model, -1)


def models_of(requests: Sequence[Request]) -> list[int]:
    return [request.cell.model for request in requests]


def in_order() -> list[Request]:
    """All of the first pass."""
    with closing(opened()) as book:
        return list(book.trade((), 30))


def test_each_is_given_the_first_cells_of_its_own_models(store: str) -> None:
    whole = [request.cell for request in in_order()]
    with closing(opened(Address.parse(store))) as mine, closing(opened(Address.parse(store))) as other:
        first = mine.trade((), room({0: 2, 2: 3}))
        second = other.trade((), room({1: 4}))
        assert sorted(models_of(first)) == [0, 0, 2, 2, 2]
        assert models_of(second) == [1] * 4
        for model, n in ((0, 2), (1, 4), (2, 3)):
            own = [cell for cell in whole if cell.model == model]
            assert [r.cell for r in (*first, *second) if r.cell.model == model] == own[:n]
        assert [r.cell for r in first] == [cell for cell in whole if cell in {r.cell for r in first}]
        assert not mine.trade((), room({0: 0, 2: 0}))


def test_what_comes_before_it_stays_paid_for(books: tuple[Book, Book]) -> None:
    mine, other = books
    whole = [request.cell for request in in_order()]
    assert mine.pays(10.0, "elsewhere")  # 20 are left: the first 20 cells, of whichever model
    within = [cell.model for cell in whole[:20]]
    assert len(mine.trade((), room({0: 30}))) == within.count(0)
    assert len(other.trade((), room({1: 30, 2: 30}))) == within.count(1) + within.count(2)
    assert mine.free == 0.0 or other.free == 0.0
    assert not mine.finished


def test_what_is_paid_beside_comes_out_of_the_last_cells(books: tuple[Book, Book]) -> None:
    mine, other = books
    whole = [request.cell for request in in_order()]
    had = mine.trade((), room({0: 1}))
    assert had[0].cell == next(cell for cell in whole if cell.model == 0)
    assert other.pays(15.0, "elsewhere")
    left = [cell.model for cell in whole[:15]]
    assert 1 + len(mine.trade((), room({0: 30}))) == left.count(0)


def test_cells_that_are_given_back_come_first_again(books: tuple[Book, Book]) -> None:
    mine, other = books
    had = mine.trade((), room({0: 4}))
    mine.give_back(had[1:3])
    assert [r.cell for r in mine.trade((), room({0: 2}))] == [r.cell for r in had[1:3]]
    assert mine.pays(mine.free, "all the rest")
    mine.give_back(had[3:])
    kept = {request.cell for request in had[:3]}
    (first, *_) = (request.cell for request in in_order() if request.cell not in kept)
    given = [*other.trade((), room({1: 30})), *mine.trade((), room({0: 30, 2: 30}))]
    assert [r.cell for r in given] == [first]


def test_cells_of_a_model_that_was_withdrawn_are_paid_for_no_more(books: tuple[Book, Book]) -> None:
    mine, other = books
    assert mine.pays(10.0, "elsewhere")
    before = len(other.trade((), room({1: 30})))
    mine.withdraw(0, "gone")
    after = other.trade((), room({1: 30, 2: 30}))
    assert before + len(after) == 20
    assert 0 not in models_of(after)


@pytest.mark.parametrize("at_once", [0, 3, 7])
def test_so_many_are_under_way_at_most(at_once: int) -> None:
    with closing(opened(at_once=at_once)) as book:
        whole = [request.cell for request in in_order()]
        had = book.trade((), room({0: 9, 1: 9, 2: 9}))
        assert [r.cell for r in had] == whole[:at_once]
        assert book.finished == (at_once == 0)
        if had:
            again = book.trade(answered(had[:1], ONES), room({0: 9, 1: 9, 2: 9}))
            assert [r.cell for r in again] == whole[at_once : at_once + 1]


def test_nobody_holds_up_others_while_there_is_enough() -> None:
    with closing(opened(at_once=math.inf)) as book:
        assert models_of(book.trade((), room({2: 30}))) == [2] * 10
        assert models_of(book.trade((), room({1: 1}))) == [1]


def test_what_is_put_aside_once_more_holds_up_nothing_that_costs_nothing() -> None:
    sampler = UCBE(design(3, 30), batch=10, seed=4)
    with closing(Book(sampler, Budget(30), most=lambda cell: float(cell.item % 2))) as book:
        book.has_answers = True
        book.trade((), room({}))
        book.pay(30.0, "elsewhere")
        book.trade((), room({}))
        book.pay(-30.0, "elsewhere")
        costs = [r.cell.item % 2 for r in in_order() if r.cell.model == 1]
        assert costs == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
        assert len(book.trade((), room({1: 1}))) == 10


def test_what_costs_nothing_does_not_wait_for_what_cannot_be_paid() -> None:
    sampler = UCBE(design(3, 30), batch=10, seed=4)
    with closing(Book(sampler, Budget(30), most=lambda cell: float(cell.item % 2))) as book:
        book.has_answers = True
        book.pay(30.0, "elsewhere")
        had = book.trade((), room({0: 1, 1: 1, 2: 1}))
        free = [request.cell for request in in_order() if request.cell.item % 2 == 0]
        assert [request.cell for request in had] == free
        book.give_back(had[-2:])
        assert tuple(book.trade((), room({0: 1, 1: 1, 2: 1}))) == book.held[-2:]
        assert [request.cell for request in book.held] == free
        book.pay(-2.0, "elsewhere")  # the first that cost something, in order
        dear = [request.cell for request in in_order() if request.cell.item % 2]
        assert [r.cell for r in book.trade((), room({0: 9, 1: 9, 2: 9}))] == dear[:2]


def test_what_costs_nothing_needs_no_hand() -> None:
    sampler = UCBE(design(3, 30), batch=10, seed=4)
    with closing(Book(sampler, Budget(30), most=lambda cell: float(cell.item % 2))) as book:
        book.has_answers = True
        had = book.trade((), room({0: 0, 1: 0, 2: 0}))
        for model in range(3):
            own = [r.cell.item for r in in_order() if r.cell.model == model]
            first = next(place for place, item in enumerate(own) if item % 2)
            assert [r.cell.item for r in had if r.cell.model == model] == own[:first]
