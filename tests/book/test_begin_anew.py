"""A run that its host goes on with: its book is begun anew, and keeps what was paid."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalbudget import Budget, Design, Reading
from evalbudget.book import BESIDE_LOGS, Book, Turn, begin_anew, end_well, paid_in, was_killed
from evalbudget.repeats.samplers import Uniform
from evalbudget.store import Address, Database, looked_into

CAME, BEGUN, KEPT = "came before", "no reply", "answers to other questions"


def book_in(db: Database, items: int = 3) -> Book:
    return Book(Uniform(Design.of_items(items)), Budget(20), db, most=2.0)


def paid(db: Database) -> dict[str, float]:
    return paid_in(db, came=CAME, begun=BEGUN)


def test_what_was_paid_stays_paid_and_what_was_planned_goes(tmp_path: Path) -> None:
    path = tmp_path / "run.book"
    db = Database.create(Address(path=path), BESIDE_LOGS, {"version": "1"})
    begin_anew(db, paid(db))
    assert paid(db) == {CAME: 0.0, BEGUN: 0.0}
    book = book_in(db)
    came, failed, begun, _waits = book.trade((), 4)
    book.pay(1.5, KEPT)
    book.pay(0.25, "sent again")
    book.begins(begun, 1.0)
    book.trade([Reading(came, 0.5), Reading(failed, None, 2.0, "broken")], 0)
    db.close()  # what a kill leaves
    now = {KEPT: 1.5, "sent again": 0.25, CAME: 1.0, BEGUN: 3.0}  # nothing of what was never begun
    with looked_into(path, BESIDE_LOGS) as left:
        assert paid(left) == now
    db = Database.open(Address(path=path), BESIDE_LOGS)
    begin_anew(db, {**paid(db), KEPT: 4.5})
    again = book_in(db, items=5)  # the task may be another one now
    assert (again.spent, again.free) == (8.75, 20 - 8.75)
    assert again.beside() == {**now, KEPT: 4.5}
    assert not again.calls()
    again.trade((), 3)
    begin_anew(db, paid(db))  # killed before it had begun anything
    assert book_in(db).beside() == {**now, KEPT: 4.5}
    db.close()


def test_what_is_taken_over_is_all_in_the_book_or_nothing() -> None:
    db = Database.in_memory(BESIDE_LOGS, {"version": "1"})
    begin_anew(db, {BEGUN: 4.0})
    book = book_in(db)

    def take_over(turn: Turn) -> None:
        book.pay(-4.0, BEGUN)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        book.once(take_over)
    assert paid(db)[BEGUN] == 4.0


def test_who_was_killed_left_something_beside_the_file(tmp_path: Path) -> None:
    path, alone = tmp_path / "run.book", tmp_path / "alone.book"
    db = Database.create(Address(path=path), BESIDE_LOGS, {"version": "1"})
    assert not was_killed(db)
    begin_anew(db, {KEPT: 4.0})
    book_in(db).pay(1.0, KEPT)
    shutil.copy(path, alone)
    with looked_into(alone, BESIDE_LOGS) as left:
        assert was_killed(left)
        assert paid(left)[KEPT] == 4.0
    end_well(db)
    assert not was_killed(db)
    db.close()
