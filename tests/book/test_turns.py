"""What a turn at a book asks of its store, and what it takes for known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from evalbudget import Budget, Cell, Design, Reading, Request
from evalbudget.book import Book
from evalbudget.errors import BudgetError
from evalbudget.repeats.samplers import Uniform
from evalbudget.store import Address
from postgresql_server import Server

DESIGN = Design.of_items(40)


@contextmanager
def opened(store: str, **given: Any) -> Iterator[Book]:
    book = Book(Uniform(DESIGN), Budget(200), Address.parse(store), **given)
    try:
        yield book
    finally:
        book.close()


def read(requests: Sequence[Request]) -> list[Reading]:
    return [Reading(request, 0.5) for request in requests]


def test_a_turn_goes_to_a_server_and_back_twice(postgresql: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    pipeline, execute = psycopg.Connection.pipeline, psycopg.Connection.execute

    @contextmanager
    def counted(connection: Any) -> Iterator[Any]:
        seen["there and back"] += not seen["within"]
        with pipeline(connection) as found:
            seen["within"] += 1
            yield found
            seen["within"] -= 1

    def sent(connection: Any, *given: Any, **more: Any) -> Any:
        seen["statements"] += 1
        seen["there and back"] += not seen["within"]
        return execute(connection, *given, **more)

    with opened(f"{postgresql.url}#twice") as book:
        came = read(book.trade((), 8))
        monkeypatch.setattr(book._workers, "_look_again", float("inf"))
        monkeypatch.setattr(psycopg.Connection, "pipeline", counted)
        monkeypatch.setattr(psycopg.Connection, "execute", sent)
        monkeypatch.setattr(
            psycopg.Cursor, "executemany", lambda *_, **__: pytest.fail("rows are written one by one")
        )
        assert len(book.trade(came, 8)) == 8
        assert seen["there and back"] == 2
        assert seen["statements"] <= 12


def test_whole_costs_and_others_are_written_in_one_turn(store: str) -> None:
    def most(cell: Cell) -> float:
        return 1 if cell.item % 2 else 0.5

    with opened(store, most=most) as book:
        requests = book.trade((), 6)
        costs = [1, 0.25, 1, 0.5, 0, 0.5]
        came = [Reading(each, 0.5, cost) for each, cost in zip(requests, costs, strict=True)]
        book.trade(came, 2)
        assert [called.reading.cost for called in book.calls()] == costs
        assert book.spent == sum(costs)


def test_a_highest_cost_for_each_item() -> None:
    costs = [1.0, 2.0, 3.0, *[1.0] * (len(DESIGN.items) - 3)]
    book = Book(Uniform(DESIGN), Budget(200), most=costs)
    requests = book.trade((), 3)
    assert [book.most(each) for each in requests] == [costs[each.cell.item] for each in requests]
    assert book.free == 200 - sum(map(book.most, requests))
    with pytest.raises(BudgetError, match="the highest cost of a call is 0"):
        Book(Uniform(DESIGN), Budget(200), most=[*costs[1:], 0.0])


def test_a_book_that_one_worker_has_is_not_read_at_every_turn() -> None:
    book, sent = Book(Uniform(DESIGN), Budget(200)), list[str]()
    came = read(book.trade((), 8))
    file = book._db._file
    assert file is not None
    file.set_trace_callback(sent.append)
    assert len(book.trade(came, 8)) == 8
    assert sent
    assert not [statement for statement in sent if statement.startswith("SELECT")]
