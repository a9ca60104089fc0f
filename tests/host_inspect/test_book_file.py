"""Where the book of a run on inspect is, and who finds it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.host_inspect.worlds import paid_by

from evalbudget.errors import HeldError, InvalidInputError
from evalbudget.run._lock import held
from evalbudget.store import Database, Layout
from evalbudget_inspect.host import book_file
from evalbudget_inspect.host.book_file import BookFile, book_path, open_book, spent_by
from evalbudget_inspect.host.current_run import _leave


@pytest.fixture(autouse=True)
def let_go() -> Iterator[None]:
    yield
    _leave()
    assert not book_file._open


def run(folder: Path | str, task_id: str, earlier: Path | None = None) -> Any:
    log = None if earlier is None else SimpleNamespace(location=f"{earlier}/earlier.eval")
    spec = SimpleNamespace(task_id=task_id)
    return SimpleNamespace(spec=spec, log_location=f"{folder}/now.eval", goes_on_from=log)


def opened(*runs: Any) -> BookFile:
    found = open_book(runs)
    assert found is not None
    return found


def paid(file: BookFile) -> float:
    return paid_by(file.db)


def pays(file: BookFile, cost: float) -> None:
    book_file_paid = "INSERT INTO calls VALUES (100, -1, 0, 0, ?, ?, 'paid', ?)"
    with file.db.write() as connection:
        connection.exec_driver_sql(book_file_paid, (cost, cost, cost))


def folders(tmp_path: Path, *names: str) -> list[Path]:
    found = [tmp_path / name for name in names]
    for each in found:
        each.mkdir()
    return found


def test_an_attempt_elsewhere_and_whoever_goes_on_from_either_log_have_one_book(tmp_path: Path) -> None:
    here, there = folders(tmp_path, "here", "there")
    pays(opened(run(here, "t")), 3.0)
    second = opened(run(there, "t", here))
    assert second.path == here / ".evalbudget-t.book"
    assert paid(second) == 3.0
    pays(second, 2.0)
    _leave()
    assert [path.name for path in sorted(there.iterdir())] == [".evalbudget-t.place"]
    assert spent_by([str(there)], "t") == spent_by([str(here)], "t") == 5.0
    assert spent_by([str(there)], "other") is None
    assert paid(opened(run(there, "t", there))) == 5.0
    assert opened(run(there, "other")).path.parent == there


def test_what_another_attempt_paid_until_this_one_had_the_book_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here,) = folders(tmp_path, "here")
    own = book_file.file_of_own

    def had_by_another_one(path: Path, layout: Layout) -> AbstractContextManager[Database]:
        monkeypatch.undo()
        pays(opened(run(here, "t")), 3.0)
        _leave()
        return own(path, layout)

    opened(run(here, "t"))
    _leave()
    monkeypatch.setattr(book_file, "file_of_own", had_by_another_one)
    file = opened(run(here, "t", here))
    assert (paid(file), file.lacks) == (3.0, False)


def test_models_that_race_have_one_book_whoever_of_them_goes_on(tmp_path: Path) -> None:
    (here,) = folders(tmp_path, "here")
    pays(opened(run(here, "a"), run(here, "b")), 3.0)
    _leave()
    moved = tmp_path / "moved"
    shutil.copytree(here, moved)
    only_b = opened(run(moved, "b", moved))
    assert only_b.path == moved / ".evalbudget-a.book"
    assert paid(only_b) == 3.0
    _leave()
    pays(opened(run(here, "c")), 4.0)
    joined = opened(run(here, "a", here), run(here, "c", here))  # each had been paid for by itself
    assert paid(joined) == 7.0
    assert opened(run(here, "c", here)).path == joined.path


def test_a_task_that_the_host_tries_again_within_a_run_goes_on(tmp_path: Path) -> None:
    (here,) = folders(tmp_path, "here")
    first = opened(run(here, "t"))
    pays(first, 3.0)
    ended: list[str] = []
    first.ends = lambda: ended.append("first")
    assert paid(opened(run(here, "t"))) == 3.0
    first.let_go()
    assert ended == ["first"]


def test_logs_in_a_bucket_have_their_book_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    pays(opened(run("memory://bucket/logs", "t")), 3.0)
    _leave()
    path = book_path(["memory://bucket/logs"], "t")
    assert path.is_relative_to(tmp_path / "evalbudget")
    assert f"what is paid stands in {path}" in caplog.text
    assert spent_by(["memory://bucket/logs"], "t") == 3.0
    assert spent_by(["memory://bucket/others"], "t") is None
    assert paid(opened(run("memory://bucket/more", "t", Path("memory://bucket/logs")))) in (0.0, 3.0)


@pytest.mark.parametrize("said", [b"", b"\xff", b"\0", b"a" * 5000])
def test_a_damaged_place_is_told(tmp_path: Path, said: bytes) -> None:
    (tmp_path / ".evalbudget-t.place").write_bytes(said)
    with pytest.raises(InvalidInputError, match=r"is damaged .*Restore it, or delete it"):
        book_path([str(tmp_path)], "t")


def test_a_run_without_a_log_has_no_book() -> None:
    nowhere = SimpleNamespace(spec=SimpleNamespace(task_id="t"), log_location="", goes_on_from=None)
    assert open_book([nowhere]) is None  # type: ignore[list-item]


# what is not whole, and what cannot be written


def killed(folder: Path, into: Path) -> Path:
    """What a kill of a run in one folder leaves, put into another one; the path of its book."""
    file = opened(run(folder, "t"))
    pays(file, 3.0)
    for path in folder.iterdir():
        shutil.copy(path, into / path.name)
    _leave()
    assert (into / ".evalbudget-t.book-wal").stat().st_size
    return into / ".evalbudget-t.book"


def test_a_book_that_lacks_something_is_known(tmp_path: Path) -> None:
    alive, here, gone = folders(tmp_path, "alive", "here", "gone")
    book = killed(alive, here)
    wal = book.with_name(f"{book.name}-wal")
    whole = opened(run(here, "t", here))
    assert (paid(whole), whole.lacks) == (3.0, False)
    pays(whole, 2.0)
    _leave()
    assert not wal.exists()
    again = opened(run(here, "t", here))
    assert (paid(again), again.lacks) == (5.0, False)
    _leave()
    book = killed(alive, here)
    wal.unlink()
    cut = opened(run(here, "t", here))
    assert (paid(cut), cut.lacks) == (3.0, True)  # of what had been paid when that attempt began
    _leave()  # before it had looked at the logs
    cut = opened(run(here, "t", here))
    assert (paid(cut), cut.lacks) == (3.0, True)
    assert wal.name in (said := cut.lacking(True, 12))
    assert "(12 calls at most)" in said
    _leave()
    later = opened(run(here, "t", here))
    assert (later.lacks, later.lacking(False, 5)) == (False, said)
    _leave()
    later = opened(run(here, "t", here))
    assert "(15 calls at most)" in later.lacking(True, 3)
    _leave()
    assert opened(run(here, "v")).lacking(False, 5) == ""
    _leave()
    assert not opened(run(gone, "t")).lacks
    assert opened(run(gone, "u", here)).lacks


def test_whoever_goes_on_from_an_attempt_that_was_kept_away_finds_the_book(tmp_path: Path) -> None:
    here, there = folders(tmp_path, "here", "there")
    path = opened(run(here, "t")).path
    _leave()
    lock = held(path)
    with pytest.raises(HeldError, match="being written by another process"):
        opened(run(there, "t", here))
    assert lock is not None
    lock.release()
    assert opened(run(there, "t", there)).path == path


def test_whoever_may_read_the_logs_may_read_the_book(tmp_path: Path) -> None:
    (here,) = folders(tmp_path, "here")
    path = opened(run(here, "t")).path
    (here / "log").touch()
    assert path.stat().st_mode == (here / "log").stat().st_mode


def test_what_was_paid_is_copied_where_the_book_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    here, there, elsewhere = folders(tmp_path, "here", "there", "elsewhere")
    pays(opened(run(here, "t")), 3.0)
    opened(run(there, "t", here))
    _leave()
    may = os.access
    monkeypatch.setattr(
        os, "access", lambda path, how: here not in Path(path, "x").parents and may(path, how)
    )
    for folder, earlier in ((elsewhere, here), (there, there)):  # which names the other one so far
        file = opened(run(folder, "t", earlier))
        assert (file.path.parent, paid(file), file.lacks) == (folder, 3.0, False)
        pays(file, 2.0)
        _leave()
        assert f"{here}/.evalbudget-t.book cannot be written" in caplog.text
        assert paid(opened(run(folder, "t", folder))) == 5.0
        _leave()
        left = {path.name for path in folder.iterdir()}
        assert left == {".evalbudget-t.book", "..evalbudget-t.book.lock"}
