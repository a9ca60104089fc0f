"""A run that its host goes on with: its book is begun anew, and keeps what was paid."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalbudget import Budget, Design, Reading
from evalbudget.book import BESIDE_LOGS, Book, Turn, begin_anew, paid_in
from evalbudget.repeats.samplers import Uniform
from evalbudget.store import Address, Database, looked_into

WHY, KEPT = "no reply", "answers to other questions"


def book_in(db: Database, items: int = 3) -> Book:
    return Book(Uniform(Design.of_items(items)), Budget(20), db, most=2.0)


def test_what_was_paid_stays_paid_and_what_was_planned_goes(tmp_path: Path) -> None:
    path = tmp_path / "run.book"
    db = Database.create(Address(path=path), BESIDE_LOGS, {"version": "1"})
    assert (begin_anew(db, WHY), paid_in(db)) == (0, 0.0)
    book = book_in(db)
    came, failed, begun, _waits = book.trade((), 4)
    book.pay(1.5, KEPT)
    book.pay(0.25, "sent again")
    book.begins(begun, 1.0)
    book.trade([Reading(came, 0.5), Reading(failed, None, 2.0, "broken")], 0)
    db.close()  # what a kill leaves
    with looked_into(path, BESIDE_LOGS) as left:
        assert paid_in(left) == 1.0 + 2.0 + 1.0 + 1.5 + 0.25  # nothing of what was never begun
    db = Database.open(Address(path=path), BESIDE_LOGS)
    assert begin_anew(db, WHY, 3.0, kept=KEPT) == 1
    again = book_in(db, items=5)  # the task may be another one now
    assert (again.spent, again.free) == (8.75, 20 - 8.75)
    assert again.beside() == {KEPT: 1.5, WHY: 7.25}
    assert not again.calls()
    again.trade((), 3)
    begin_anew(db, WHY, kept=KEPT)  # killed before it had begun anything
    assert book_in(db).beside() == {KEPT: 1.5, WHY: 7.25}
    db.close()


def test_what_is_taken_over_is_all_in_the_book_or_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    db = Database.in_memory(BESIDE_LOGS, {"version": "1"})
    begin_anew(db, WHY, 4.0)
    book = book_in(db)

    def take_over(turn: Turn) -> None:
        book.pay(-4.0, WHY)
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        book.once(take_over)
    assert paid_in(db) == 4.0
