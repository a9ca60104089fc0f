"""What `make house` counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalbudget import Budget, Design, Reading
from evalbudget.book import Book
from evalbudget.repeats.samplers import Uniform
from house import HOME, PARTS, Named, Route, bookkeepers, files, formats, hops, lines, twice

BOOKS = '''
from evalbudget.store import Layout

_FORMAT = 3
TABLES = Layout("book", None, 1, 0)

class Ledger:
    """Counts."""

    def pay(self, cost):
        self.spent += cost

class Copy:
    def hold(self, cost):
        self.about["held"] += cost

class Shows:
    FORMAT = "%d"

    def show(self, book):
        return book.spent + self.width

class _Private:
    pass
'''


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A house of two files."""
    for part, text in (
        ("core", BOOKS),
        ("inspect", "class Ledger:\n    pass\n\nclass _Private:\n    pass\n"),
    ):
        folder = tmp_path / PARTS[part]
        folder.mkdir(parents=True)
        (folder / "books.py").write_text(text)
    return tmp_path


def test_classes_that_add_to_what_is_spent_keep_books_and_those_that_read_it_do_not(home: Path) -> None:
    assert [named.name for named in bookkeepers(home)] == ["Ledger", "Copy"]


def test_formats_and_names(home: Path) -> None:
    where = f"{PARTS['core']}/books.py"
    assert formats(home) == [Named("_FORMAT", where), Named("TABLES", where)]
    assert twice(home) == {"Ledger": [where, f"{PARTS['inspect']}/books.py"]}


def test_lines_are_all_lines(home: Path) -> None:
    assert lines(home, "core") == BOOKS.count("\n")
    assert lines(home, "inspect") == 5
    assert lines(home, "tests") == 0


def test_it_looks_at_this_house(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(files(HOME, part) for part in PARTS)
    assert len(formats(HOME)) >= 2
    monkeypatch.setitem(PARTS, "core", "src/evalbudget/book")  # to parse all of it takes seconds
    monkeypatch.setattr("house._PRODUCT", ("core",))
    assert "Copy" in {named.name for named in bookkeepers(HOME)}


def read(readings: int) -> None:
    """One after the other, in memory."""
    book = Book(Uniform(Design.of_items(10)), Budget(readings))
    for _ in range(readings):
        (request,) = book.trade((), 1)
        book.trade([Reading(request, 1.0)], 0)
    book.close()


def test_a_reading_goes_through_the_files_that_are_entered_for_each() -> None:
    passed, changes = hops(read)
    with Route() as route:
        read(30)
    every_time = [Path(name).name for name, calls in route.calls.items() if calls >= 30]
    assert {"_copy.py", "_database.py", "_turn.py", "_turns.py"} <= set(every_time)
    assert len(every_time) / 2 <= passed <= 2 * len(every_time)
    assert changes >= 8  # there and back
