"""A database of the caller's that others may look into, and what Ctrl-C takes from it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from evalbudget.book import ALONE
from evalbudget.store import Address, Database, looked_into


@pytest.mark.parametrize("is_file", [False, True])
def test_ctrl_c_within_a_statement_takes_its_transaction_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_file: bool
) -> None:
    """Other threads write in the same database, such as answers that come in."""

    def cut(*_: object) -> None:
        raise KeyboardInterrupt

    def broken_off() -> None:
        with monkeypatch.context() as patch, db.write() as connection:
            connection.exec_driver_sql("INSERT INTO meta VALUES ('cut', 'x')")
            for way in ("do_execute_no_params", "do_execute"):
                patch.setattr(connection.dialect, way, cut)
            connection.exec_driver_sql("INSERT INTO meta VALUES ('off', 'x')")

    path, meta = Address(path=tmp_path / "book.db"), {"version": "1"}
    db = Database.create(path, ALONE, meta) if is_file else Database.in_memory(ALONE, meta)
    with db.write() as connection:
        connection.exec_driver_sql("INSERT INTO meta VALUES ('before', 'x')")
    with pytest.raises(KeyboardInterrupt):
        broken_off()
    with db.write() as connection:
        connection.exec_driver_sql("INSERT INTO meta VALUES ('after', 'x')")
    assert {key for (key,) in db.rows(text("SELECT key FROM meta"))} == {"version", "before", "after"}
    db.close()


@pytest.mark.parametrize("ends", [False, True])
def test_a_copy_of_a_file_in_use_is_of_one_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: bool
) -> None:
    """Also if its latest changes are moved into it while it is copied, or its process closes it."""
    own = Database.create(Address(path=tmp_path / "book.db"), ALONE, {"version": "1"})
    copied, copies = shutil.copyfile, 0

    def copy(source: Path, to: Path) -> None:
        nonlocal copies
        copied(source, to)
        copies += 1
        if copies > 1:
            return
        if ends:
            own.close()
        else:
            with own.write() as connection:
                connection.exec_driver_sql("INSERT INTO meta VALUES ('also', 'x')")
            assert own._file is not None
            own._file.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    with own.write() as connection:
        connection.exec_driver_sql("INSERT INTO meta VALUES ('more', 'x')")
    monkeypatch.setattr("evalbudget.store._look.shutil.copyfile", copy)
    with looked_into(tmp_path / "book.db", ALONE) as db:
        found = {str(key) for (key,) in db.rows(text("SELECT key FROM meta"))}
    assert found == {"version", "more"} | (set() if ends else {"also"})
    own.close()


def test_a_file_is_looked_into_while_its_process_keeps_it_locked(tmp_path: Path) -> None:
    """As one that has just begun does, before anything stands beside the file."""
    path = tmp_path / "book.db"
    Database.create(Address(path=path), ALONE, {"version": "1"}).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        for line in ("PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = MEMORY", "BEGIN EXCLUSIVE"):
            holder.execute(line)
        assert list(tmp_path.iterdir()) == [path]
        with looked_into(path, ALONE) as db:
            assert db.rows(text("SELECT value FROM meta")) == [("1",)]
