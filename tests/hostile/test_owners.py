"""Files of another user: what may not be read or written is told with its path and the remedy."""

from __future__ import annotations

import csv
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.audits.store.audits import audit

from evalbudget.book import BILL
from evalbudget.cli.main import cli
from evalbudget.errors import EvalbudgetError
from evalbudget.run import file_of_own

NOBODY = 65534


@pytest.fixture
def theirs() -> Iterator[Path]:
    """A folder of root's, beside labels for its audit; into pytest's own folders nobody else may come."""
    above = Path(tempfile.mkdtemp())
    above.chmod(0o755)
    (folder := above / "theirs").mkdir()
    audit(folder / "a.sqlite").close()
    (folder / "table.csv").write_text("item,score\na,1\nb,0\n")
    with file_of_own(folder / "j.db", BILL):
        pass
    said("audit", "export", folder / "a.sqlite", "--format", "csv", "-o", above / "exported.csv")
    with (above / "exported.csv").open() as file, (above / "labels.csv").open("w") as labels:
        rows = csv.DictReader(file)
        writer = csv.DictWriter(labels, list(rows.fieldnames or ()))
        writer.writeheader()
        writer.writerow(next(rows) | {"score": "4"})
    list(uses(shutil.copytree(folder, above / "copy")))  # who is not root may not import what it needs
    yield folder
    shutil.rmtree(above)


def said(*words: object) -> str:
    done = CliRunner().invoke(cli, list(map(str, words)))
    assert done.exit_code in (0, 2), done.output
    return done.output if done.exit_code else ""


def uses(folder: Path) -> Iterator[str]:
    """What is said where an audit gets a label, a record goes on, and a table is read and one written."""
    yield said("audit", "import", folder / "a.sqlite", folder.parent / "labels.csv", "--by", "ann")
    try:
        with file_of_own(folder / "j.db", BILL) as db, db.write():
            pass
        yield ""
    except (EvalbudgetError, PermissionError) as ex:
        yield str(ex)
    yield said("report", folder / "table.csv")
    yield said("report", folder / "table.csv", "--json", folder / "out.json")


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize(
    ("files", "folder", "told"),
    [
        (0o666, 0o777, ["", "", "", ""]),
        (0o644, 0o755, ["a.sqlite cannot be written; copy it to where it can", "j.db", "", "out.json"]),
        (0o600, 0o755, ["a.sqlite cannot be opened: unable to open", "j.db", "table.csv", "table.csv"]),
        (0o666, 0o700, ["a.sqlite cannot be used: Permission", "j.db", "table.csv", "out.json"]),
    ],
)
def test_files_of_another_user(theirs: Path, files: int, folder: int, told: list[str]) -> None:
    for path in theirs.iterdir():
        path.chmod(files)
    theirs.chmod(folder)
    os.seteuid(NOBODY)
    try:
        heard = list(uses(theirs))
    finally:
        os.seteuid(0)
    for error, wanted in zip(heard, told, strict=True):
        assert bool(error) is bool(wanted)
        assert not wanted or f"{theirs}/{wanted}" in error, error
        assert not wanted or "work on a copy" in error or "copy it to where" in error


def test_what_a_task_may_not_read_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def of_a_task(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", "data.json")

    monkeypatch.setattr("evalbudget.cli._sources.opened", of_a_task)
    done = CliRunner().invoke(cli, ["doctor", "x"])
    assert done.exit_code == 4
    assert ", in of_a_task" in done.stderr
    assert "Permission denied: 'data.json'" in done.stderr
