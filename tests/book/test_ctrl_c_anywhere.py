"""Ctrl-C wherever Python looks for it, while a database is opened, written and closed."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import pytest
from sqlalchemy import text

from evalbudget.book import ALONE
from evalbudget.book._tables import LAYOUT
from evalbudget.store import Address, Database, Layout
from evalbudget.store._database import _engine


class _CtrlC:
    """Comes once: where so many calls were made by SQLAlchemy and by our module."""

    def __init__(self, after: int) -> None:
        self._left = after
        self.came = False

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event not in ("call", "c_return") or not ("sqlalchemy" in name or name.endswith("_database.py")):
            return
        if event == "call" and frame.f_code.co_name in ("close", "_let_go"):  # before these, nobody closes
            return
        self._left -= 1
        if self._left < 0:
            sys.setprofile(None)
            self.came = True
            raise KeyboardInterrupt

    @contextmanager
    def coming(self) -> Iterator[None]:
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)


def _write(db: Database, key: str) -> None:
    with db.write() as connection:
        connection.exec_driver_sql(f"INSERT INTO meta VALUES ('{key}', 'x')")


def _opened(path: Path, layout: Layout) -> Database:
    """With nothing asked yet."""
    address = Address(path=path)
    return Database(address, layout, _engine(address), time.time)


def _everywhere(check: Callable[[_CtrlC, int], None]) -> None:
    gc.disable()  # as a connection in a traceback may long do, what is not let go must keep its lock
    try:
        for after in range(10_000):
            ctrl_c = _CtrlC(after)
            check(ctrl_c, after)
            if not ctrl_c.came:
                assert after > 40
                return
    finally:
        gc.enable()
        gc.collect()


@pytest.mark.parametrize("layout", [ALONE, LAYOUT], ids=["alone", "shared"])
def test_whoever_is_broken_off_leaves_the_file_to_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layout: Layout
) -> None:
    """Also to another connection of the same process, while the traceback is still at hand."""

    def check(ctrl_c: _CtrlC, n: int) -> None:
        path = tmp_path / f"{n}.db"
        Database.create(Address(path=path), layout, {"version": "1"}).close()
        if layout is ALONE:
            _leave_beside(path)
        db = _opened(path, layout)
        broken = None
        try:
            with ctrl_c.coming():
                try:
                    _write(db, "cut")
                finally:
                    db.close()
        except BaseException as ex:
            broken = ex
        assert isinstance(broken, KeyboardInterrupt) == ctrl_c.came
        other = Database.open(Address(path=path), layout)
        _write(other, "after")
        other.close()

    monkeypatch.setattr("evalbudget.store._database._PATIENCE", 0.05)
    monkeypatch.setattr("evalbudget.store._database._SOON", 0.02)
    _everywhere(check)


def _leave_beside(path: Path) -> None:
    """The latest changes, as a process does that is killed."""
    dying = _opened(path, ALONE)
    _write(dying, "early")
    dying._drop()


@pytest.mark.parametrize("is_file", [False, True])
def test_whoever_goes_on_writes_in_the_same_database(tmp_path: Path, is_file: bool) -> None:
    def check(ctrl_c: _CtrlC, n: int) -> None:
        address = Address(path=tmp_path / f"{n}.db")
        meta = {"version": "1"}
        db = Database.create(address, ALONE, meta) if is_file else Database.in_memory(ALONE, meta)
        _write(db, "before")
        with suppress(KeyboardInterrupt), ctrl_c.coming():
            _write(db, "cut")
        _write(db, "after")
        kept = {key for (key,) in db.rows(text("SELECT key FROM meta"))}
        assert kept - {"cut"} == {"version", "before", "after"}
        db.close()

    _everywhere(check)
