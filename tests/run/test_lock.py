"""One process at a time, and what becomes of it on file systems without locks."""

from __future__ import annotations

import errno
import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock
from sqlalchemy import text
from tests.audits.store.audits import audit

from evalbudget.audits.store import only_run
from evalbudget.book import BILL
from evalbudget.budget import Budget, Unit
from evalbudget.errors import JournalError
from evalbudget.prices import Tariff
from evalbudget.run import bill_on_file, file_of_own, spent_on
from evalbudget.run._lock import hold


def test_a_second_one_is_refused_until_the_first_lets_go(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lock = hold(path)
    assert lock is not None
    with pytest.raises(BlockingIOError, match="held by another"):
        hold(path)
    lock.release()
    again = hold(path)
    assert again is not None
    again.release()


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.EINVAL])
def test_without_locks_it_goes_on_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, number: int
) -> None:
    def refused(_lock: FileLock) -> None:
        raise OSError(number, "no locks here")

    monkeypatch.setattr(FileLock, "acquire", refused)
    with caplog.at_level(logging.WARNING), file_of_own(tmp_path / "a.db", BILL) as db:
        assert db.rows(text("SELECT key FROM meta")) == [("version",)]
    assert "only one process" in caplog.text


def test_an_audit_without_locks_is_named_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(_lock: FileLock) -> None:
        raise OSError(errno.ENOLCK, "no locks here")

    monkeypatch.setattr(FileLock, "acquire", refused)
    with caplog.at_level(logging.WARNING), only_run(tmp_path / "a.sqlite"):
        assert f"{tmp_path / 'a.sqlite'} cannot be locked" in caplog.text


def test_what_cannot_be_locked_is_refused_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_lock: FileLock) -> None:
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(FileLock, "acquire", refused)
    refusal = pytest.raises(JournalError, match="cannot be written: Permission denied")
    with refusal, file_of_own(tmp_path / "a.db", BILL):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_keeps_no_lock_and_loses_no_call(tmp_path: Path) -> None:
    path, cap, tariff = tmp_path / "a.bill", Budget(1e6, Unit.TOKENS), Tariff(Unit.TOKENS)
    bill = bill_on_file(path, cap, tariff)
    first = bill.reserve("m", 9, 1, sample="x")
    assert first is not None
    bill._once(lambda turn: turn.connection.execute(text("PRAGMA max_page_count = 1")))
    with pytest.raises(JournalError, match=r"a\.bill cannot be written: .*full\. Make room"):
        bill.reserve_all("m", [(1, 0, "y" * 9000)] * 9)
    bill._once(lambda _: None)
    assert (bill.held, bill.under_way) == (10.0, 1)
    with pytest.raises(JournalError, match=r"a\.bill cannot be written: .*full\. Make room"):
        bill.add(replace(first, sample="y" * 9000), 1.0, "answered", 1)
    bill.close()
    lock = hold(path)
    assert lock is not None
    lock.release()
    assert spent_on(path)[1] == {"x": 10.0}


@pytest.mark.parametrize(
    ("of_folder", "of_files"), [(0o755, 0o600), (0o1777, 0o600), (0o775, 0o640), (0o2755, 0o640)]
)
def test_files_are_their_owners_alone_unless_the_folder_is_for_several(
    tmp_path: Path, of_folder: int, of_files: int
) -> None:
    tmp_path.chmod(of_folder)
    before = os.umask(0o027)
    try:
        with file_of_own(tmp_path / "a.db", BILL):
            pass
        audit(tmp_path / "a.sqlite").close()
        with only_run(tmp_path / "a.sqlite"):
            pass
    finally:
        os.umask(before)
    found = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir() if path.is_file()}
    assert len(found) == 4
    assert set(found.values()) == {oct(of_files)}, found
