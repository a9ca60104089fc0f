"""Where the book of a run on inspect is, and who finds it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalbudget.book import paid_in
from evalbudget.errors import InvalidInputError
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
    assert paid_in(second.db) == 3.0
    pays(second, 2.0)
    _leave()
    assert [path.name for path in sorted(there.iterdir())] == [".evalbudget-t.place"]
    assert spent_by([str(there)], "t") == spent_by([str(here)], "t") == 5.0
    assert spent_by([str(there)], "other") is None
    assert paid_in(opened(run(there, "t", there)).db) == 5.0
    assert opened(run(there, "other")).path.parent == there


def test_models_that_race_have_one_book_whoever_of_them_goes_on(tmp_path: Path) -> None:
    (here,) = folders(tmp_path, "here")
    pays(opened(run(here, "a"), run(here, "b")), 3.0)
    _leave()
    moved = tmp_path / "moved"
    shutil.copytree(here, moved)
    only_b = opened(run(moved, "b", moved))
    assert only_b.path == moved / ".evalbudget-a.book"
    assert paid_in(only_b.db) == 3.0
    _leave()
    pays(opened(run(here, "c")), 4.0)
    joined = opened(run(here, "a", here), run(here, "c", here))  # each had been paid for by itself
    assert paid_in(joined.db) == 7.0
    assert opened(run(here, "c", here)).path == joined.path


def test_a_task_that_the_host_tries_again_within_a_run_goes_on(tmp_path: Path) -> None:
    (here,) = folders(tmp_path, "here")
    first = opened(run(here, "t"))
    pays(first, 3.0)
    ended: list[str] = []
    first.ends = lambda: ended.append("first")
    assert paid_in(opened(run(here, "t")).db) == 3.0
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
    assert paid_in(opened(run("memory://bucket/more", "t", Path("memory://bucket/logs"))).db) in (0.0, 3.0)


@pytest.mark.parametrize("said", [b"", b"\xff", b"\0", b"a" * 5000])
def test_a_damaged_place_is_told(tmp_path: Path, said: bytes) -> None:
    (tmp_path / ".evalbudget-t.place").write_bytes(said)
    with pytest.raises(InvalidInputError, match=r"is damaged .*Restore it, or delete it"):
        book_path([str(tmp_path)], "t")


def test_a_run_without_a_log_has_no_book() -> None:
    nowhere = SimpleNamespace(spec=SimpleNamespace(task_id="t"), log_location="", goes_on_from=None)
    assert open_book([nowhere]) is None  # type: ignore[list-item]
