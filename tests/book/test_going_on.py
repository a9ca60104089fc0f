"""A worker that goes on under its name, what it lets go of, and what it pays for no cell."""

from __future__ import annotations

import errno
import random
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.book.test_book import Clock, _break_the_next_turn, at_random, buy, never, opened, reading, where

from evalbudget import Budget, Cell, Design, Reading, Request
from evalbudget.book import ALONE, Book, told_in
from evalbudget.book._workers import _birth, _machine
from evalbudget.errors import BudgetError, StoreDownError, StoreError
from evalbudget.repeats.samplers import Auto, EBBernstein, Uniform
from evalbudget.store import Address, Database, looked_into

DESIGN = Design.of_items(6)
__all__ = ["where"]  # a fixture


def left_by(store: str, n: int, budget: float = 20) -> tuple[Request, ...]:
    """What a worker had under way that went without a word."""
    book = Book(Uniform(DESIGN), Budget(budget), Address.parse(store), known_as="a")
    had = tuple(book.trade((), n))
    book.close(keeps=True)
    return had


def test_it_has_what_it_had_and_says_what_became_of_it(store: str) -> None:
    had = left_by(store, 4)
    with opened(Uniform(DESIGN), Budget(20), Address.parse(store), known_as="a") as book:
        assert (book.goes_on, book.held, book.lost, book.spent) == (True, had, (), 0.0)
        assert [book.attempt(request) for request in had] == [0] * 4
        assert book.most(had[0]) == 1.0
        book.trade([Reading(had[0], 0.5, 0.25)], 0)
        book.give_back([had[1]])
        book.lose([had[2]])
        assert (book.held, book.spent, book.free) == (had[3:], 1.25, 20 - 1.25 - 1)
        cells = book.cells()
        assert cells.tries[:4].tolist() == [1, 0, 1, 1]
        assert cells.lost[:4].tolist() == [0, 0, 1, 0]
        assert not cells.failures.any()
        again = book.trade((), 2)
        assert [request.cell for request in again] == [had[1].cell, had[2].cell]
        # what was never sent leaves its number to the next call, perhaps with half of an answer
        assert [book.attempt(request) for request in again] == [0, 1]
        book.trade([reading(request, never) for request in (*again, had[3])], 0)
        told = [(called.reading.request.id, called.attempt, called.is_lost) for called in book.calls()]
        assert told == [
            *((had[0].id, 0, False), (had[2].id, 0, True), (had[3].id, 0, False)),
            *((again[0].id, 0, False), (again[1].id, 1, False)),
        ]
        assert {called.worker for called in book.calls()} == {"a"}
        assert book.spent == 4.25
    with opened(Uniform(DESIGN), Budget(20), Address.parse(store), known_as="a") as book:
        assert (book.held, book.lost) == ((), ())  # what it gave up is not asked about again
        buy(book, fails=never)
        assert book.spent == pytest.approx(19.25 + 0.0)
        assert book.cells().asked == 20


def test_what_others_took_for_lost_is_told_or_given_back(tmp_path: Path, monkeypatch: Any) -> None:
    clock, where = Clock(), Address(path=tmp_path / "book.db")
    monkeypatch.setattr("time.monotonic", clock)
    gone = Book(Uniform(DESIGN), Budget(20), where, known_as="a", clock=clock)
    had = gone.trade((), 4)
    gone.close(keeps=True)
    with opened(Uniform(DESIGN), Budget(20), where, known_as="b", clock=clock) as other:
        clock.now += 61
        (taken,) = other.trade((), 1)
        assert (taken.cell, other.spent) == (had[0].cell, 4.0)
        assert other.attempt(taken) == 1
        book = Book(Uniform(DESIGN), Budget(20), where, known_as="a", clock=clock)
        assert (book.held, book.lost) == ((), tuple(had))
        book.give_back([had[0], had[1]])  # the first is with another one
        assert book.spent == 2.0
        book.trade([Reading(had[2], 0.5, 0.25)], 0)
        assert (book.spent, book.lost) == (1.25, (had[3],))
        cells = book.cells()
        assert cells.tries[:4].tolist() == [1, 0, 1, 1]  # with the other one, never sent, read, lost
        assert cells.lost[:4].tolist() == [0, 0, 0, 1]
        assert cells.cost[:4].tolist() == [0.0, 0.0, 0.25, 1.0]
        assert cells.cost.sum() == book.spent
        assert cells.value[2] == 0.5
        other.trade([Reading(taken, 0.75)], 0)
        assert other.spent == 2.25
        book.close()


def test_whoever_has_a_name_is_waited_for(tmp_path: Path, monkeypatch: Any) -> None:
    """Its process ended: one that has no name is gone, one that has may come back with answers."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    clock, where = Clock(), Address(path=tmp_path / "book.db")
    monkeypatch.setattr("time.monotonic", clock)
    for known_as, spent in ((None, 2.0), ("a", 2.0)):
        gone = Book(Uniform(DESIGN), Budget(20), where, known_as=known_as, clock=clock)
        gone.trade((), 2)
        with gone._db.write() as connection:
            name = f"{_machine()}/{ended.pid}/{_birth(1)}/0"
            connection.exec_driver_sql(
                "update workers set name = ?, known_as = coalesce(?, ?) where worker = ?",
                (name, known_as, name, gone._workers.me),
            )
        _silence(gone)
        with opened(Uniform(DESIGN), Budget(20), where, clock=clock) as book:
            clock.now += 2
            book.trade((), 0)
            assert book.spent == spent


def test_what_is_of_no_cell_is_paid_out_of_what_is_left_or_held(where: Address | None) -> None:
    with opened(Uniform(DESIGN), Budget(6), where, known_as="a") as book:
        had = book.trade((), 4)
        assert not book.pays(3.0, "cut off")
        assert book.spent == 0.0
        assert book.pays(2.0, "cut off")
        assert (book.spent, book.free) == (2.0, 0.0)
        assert book.pay(1.5, "no reply", out_of=had) == list(had[:2])
        assert (book.spent, book.free, book.held) == (3.5, 0.5, tuple(had[:2]))
        book.pay(1.0, "cut off")  # it is billed whether it fits or not
        assert (book.free, book.paid_beside) == (-0.5, 4.5)
        assert book.beside() == {"cut off": 3.0, "no reply": 1.5}
        assert book.trade((), 1) == []
        book.trade([reading(request, never) for request in had[:2]], 0)
        assert (book.finished, book.spent) == (True, 6.5)
        assert len(book.readings()) == 2
        assert book.cells().asked == 2
    if where is not None:
        with opened(Uniform(DESIGN), Budget(6), where, known_as="a") as book:
            assert book.paid_beside == 4.5


@pytest.mark.parametrize("committed", [False, True])
@pytest.mark.parametrize("what", ["pay", "give_back", "lose"])
def test_it_is_done_once_also_if_nobody_knows_how_a_turn_ended(
    store: str, monkeypatch: pytest.MonkeyPatch, what: str, committed: bool
) -> None:
    with opened(Uniform(DESIGN), Budget(20), Address.parse(store)) as book:
        had = book.trade((), 3)

        def act() -> None:
            if what == "pay":
                book.pay(2.0, "cut off", out_of=had)
            else:
                getattr(book, what)(had[:1])

        # the book goes on by itself after what may pass; who begins anew after an error pays anew
        error = StoreDownError if what == "pay" else StoreError
        _break_the_next_turn(book, monkeypatch, committed=committed, error=error)
        try:
            act()
        except StoreError:
            assert what != "pay"
            act()
        book.trade((), 0)
        spent = {"pay": 2.0, "give_back": 0.0, "lose": 1.0}[what]
        held = 3.0 if what == "pay" else 2.0
        assert (book.spent, book.free) == (spent, 20 - spent - held)


@pytest.mark.parametrize("committed", [False, True])
def test_a_payment_that_was_broken_off_hides_no_other(
    store: str, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    with opened(Uniform(DESIGN), Budget(20), Address.parse(store), known_as="a") as book:
        _break_the_next_turn(book, monkeypatch, committed=committed)
        with pytest.raises(StoreError):
            book.pay(2.0, "cut off")
        book.pay(3.0, "no reply")
        book.pay(3.0, "no reply")
        assert book.spent == book.paid_beside == 6.0 + 2.0 * committed


@pytest.mark.parametrize("n", [1, 5])
def test_every_call_of_an_item_has_a_number_of_its_own(where: Address | None, n: int) -> None:
    with opened(EBBernstein(DESIGN), Budget(50), where) as book:
        buy(book, n, order=random.Random(3), fails=at_random)
        found = [(called.reading.request.cell.item, called.attempt) for called in book.calls()]
    assert len(set(found)) == len(found) == 50
    for item, calls in Counter(item for item, _ in found).items():
        assert {attempt for i, attempt in found if i == item} == set(range(calls))


def test_what_is_given_back_is_paid_for_in_full_later() -> None:
    """A sampler that knows how many readings are paid counts none that was not sent."""
    with opened(Auto(DESIGN, budget=60), Budget(60)) as book:
        for _ in range(9):
            book.give_back(book.trade((), 6))
        buy(book, 6, fails=never)
        assert (book.spent, book.cells().asked) == (60.0, 60)
        assert len(book.readings()) == 60


def test_what_is_given_up_has_names() -> None:
    with opened(Uniform(DESIGN), Budget(90)) as book:
        buy(book, 3, fails=lambda request: request.cell.item in (1, 4))
        assert book.closed == (Cell(item=1), Cell(item=4))


def test_what_is_in_a_file_is_told_without_its_sampler(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    assert told_in(Address(path=path)) == (0, 0.0, set(), 0.0, 0.0)
    with opened(Uniform(DESIGN), Budget(20), Address(path=path)) as book:
        had = book.trade((), 5)
        assert told_in(Address(path=path)).spent == 5  # nobody knows what is under way
        book.trade([Reading(had[0], None, 0.5, "down"), *(Reading(r, 0.5, 0.75) for r in had[1:3])], 0)
    told = told_in(Address(path=path))
    assert told[:2] == (2, 0.5 + 2 * 0.75 + 2)  # two were left under way
    assert (told.spent, told.cap) == (0.5 + 2 * 0.75 + 2, 20)
    path.write_text("no book")
    with pytest.raises(StoreError):
        told_in(Address(path=path))


def test_nobody_waits_for_ever_for_one_that_was_refused_or_taken_for_dead(
    tmp_path: Path, monkeypatch: Any
) -> None:
    clock, where = Clock(), Address(path=tmp_path / "book.db")
    monkeypatch.setattr("time.monotonic", clock)
    gone = Book(Uniform(DESIGN), Budget(12), where, known_as="a", clock=clock)
    gone.trade((), 2)
    with opened(Uniform(DESIGN), Budget(12), where, known_as="b", clock=clock) as other:
        with pytest.raises(StoreError, match="is being filled with a budget"):
            Book(Uniform(DESIGN), Budget(9), where, known_as="a", clock=clock)
        clock.now += 61
        other.trade((), 0)
        assert other.spent == 2.0
        # it was asleep, goes on before it gives a sign of life, and is gone for good
        clock.now += 2
        assert len(gone.trade((), 2)) == 2
        _silence(gone)
        clock.now += 130
        other.trade((), 0)
        assert (other.spent, other.cells().under_way.any()) == (4.0, False)


def _silence(book: Book) -> None:
    """Without a word."""
    book._workers.close()
    book._db.close()


def test_other_scores_change_what_is_read_and_nothing_else(where: Address | None) -> None:
    with opened(Uniform(DESIGN), Budget(20), where, known_as="a") as book:
        failed, read, lost, under_way = book.trade((), 4)
        book.trade([Reading(failed, None, 0.5, "no number"), Reading(read, 0.25, 0.75)], 0)
        book.lose([lost])
        again = book.trade((), 1)[0]
        assert again.cell == failed.cell
        book.trade([Reading(again, 0.5, 0.75)], 0)
        spent = book.spent
        book.score_again(
            [Reading(failed, 0.125), Reading(read, 1.0), Reading(lost, 0.125), Reading(under_way, 0.125)]
        )
        assert book.spent == spent == 0.5 + 0.75 + 1.0 + 0.75
        cells = book.cells()
        assert cells.cost[:4].tolist() == [1.25, 0.75, 1.0, 0.0]
        # the first was asked again, and that answer counts; of a lost one and one under way there is none
        assert cells.value[:2].tolist() == [0.5, 1.0]
        assert np.isnan(cells.value[2:4]).all()
        book.score_again([Reading(read, None, 0.0, "no number")])
        told = {called.reading.request.id: called.reading for called in book.calls()}
        assert (told[read.id].value, told[read.id].cost, told[read.id].error) == (None, 0.75, "no number")
        assert [request.cell for request in book.trade((), 2)] == [read.cell, lost.cell]


def test_what_was_said_to_be_lost_for_good_is_not_asked_about_again(tmp_path: Path, monkeypatch: Any) -> None:
    clock, where = Clock(), Address(path=tmp_path / "book.db")
    monkeypatch.setattr("time.monotonic", clock)
    gone = Book(Uniform(DESIGN), Budget(20), where, known_as="a", clock=clock)
    had = gone.trade((), 2)
    _silence(gone)
    with opened(Uniform(DESIGN), Budget(20), where, known_as="b", clock=clock) as other:
        clock.now += 61
        other.trade((), 0)
    with opened(Uniform(DESIGN), Budget(20), where, known_as="a", clock=clock) as book:
        book.lose(had[:1])
        assert (book.lost, book.spent) == ((had[1],), 2.0)
    with opened(Uniform(DESIGN), Budget(20), where, known_as="a", clock=clock) as book:
        assert (book.lost, book.spent) == ((had[1],), 2.0)


def test_a_book_of_one_worker_at_a_time_is_in_the_callers_file_and_has_no_heartbeat(tmp_path: Path) -> None:
    where = Address(path=tmp_path / "book.db")
    db = Database.create(where, ALONE, {"version": "1"})
    with pytest.raises(BudgetError, match="below the 6"):
        Book(Uniform(DESIGN), Budget(2), db, known_as="a")
    first = Book(Uniform(DESIGN), Budget(20), db, known_as="a")
    first.trade([reading(request, never) for request in first.trade((), 3)], 2)
    assert told_in(db).readings == 3
    assert {path.name for path in tmp_path.iterdir()} == {
        "book.db",
        "book.db-wal",
    }
    assert not any(thread.name == "evalbudget lease" for thread in threading.enumerate())
    first.close(keeps=True)
    db.close()
    assert [path.name for path in tmp_path.iterdir()] == ["book.db"]
    db = Database.open(where, ALONE)
    with opened(Uniform(DESIGN), Budget(20), db, known_as="a") as book:
        assert (book.spent, len(book.held)) == (3.0, 2)
        book.give_back(book.held)
        buy(book, 2, fails=never)
        assert book.spent == 20.0
    with pytest.raises(StoreError, match="seed"):
        Book(Uniform(DESIGN, seed=1), Budget(20), db)
    db.close()
    with pytest.raises(StoreError, match="it was closed"):
        Book(Uniform(DESIGN), Budget(20), db)


def test_nobody_else_opens_the_file_of_one_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("evalbudget.store._database._PATIENCE", 0.1)
    where = Address(path=tmp_path / "book.db")
    own = Database.create(where, ALONE, {"version": "1"})
    Book(Uniform(DESIGN), Budget(20), own).trade((), 2)
    with pytest.raises(StoreError, match="locked by another process"):
        Database.open(where, ALONE)
    with looked_into(tmp_path / "book.db", ALONE) as db:
        assert told_in(db).readings == 0
    monkeypatch.setattr("evalbudget.store._look.shutil.copyfile", full)
    with pytest.raises(StoreError, match=r"book.db cannot be read, or not be copied into .*TMPDIR.*No space"):
        looked_into(tmp_path / "book.db", ALONE).__enter__()
    own.close()
    Database.open(where, ALONE).close()
