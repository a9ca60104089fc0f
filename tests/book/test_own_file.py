"""A database of the caller's that others may look into, and what Ctrl-C takes from it."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
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


_KILLED = """
import os, signal, sys
from pathlib import Path
from evalbudget.book import ALONE
from evalbudget.store import Address, Database

address = Address(path=Path(sys.argv[1]))
db = Database.open(address, ALONE)
with db.write() as connection:
    connection.exec_driver_sql("INSERT INTO meta VALUES ('more', 'x')")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_file_that_a_killed_process_left_needs_no_shared_memory_either(tmp_path: Path) -> None:
    path = tmp_path / "book.db"
    Database.create(Address(path=path), ALONE, {"version": "1"}).close()
    killed = subprocess.run([sys.executable, "-c", _KILLED, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert {each.name for each in tmp_path.iterdir()} == {"book.db", "book.db-wal"}
    with closing(Database.open(Address(path=path), ALONE)) as db:
        levels = [db.rows(text("PRAGMA synchronous"))]
        with db.write() as connection:
            connection.exec_driver_sql("INSERT INTO meta VALUES ('last', 'x')")
        levels.append(db.rows(text("PRAGMA synchronous")))
        assert levels == [[(2,)], [(1,)]]  # FULL until it is written often, then NORMAL
        assert {each.name for each in tmp_path.iterdir()} == {"book.db", "book.db-wal"}
        assert {key for (key,) in db.rows(text("SELECT key FROM meta"))} == {"version", "more", "last"}
    assert list(tmp_path.iterdir()) == [path]
