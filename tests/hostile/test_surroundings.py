"""Disks that are full, folders that nobody may write, clocks that go back, no home: nothing paid is lost."""

from __future__ import annotations

import os
import pwd
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sqlalchemy import text
from tests.audits.store.audits import Clock, Told, audit, design

from evalbudget.audits.store import AuditStore
from evalbudget.backtest import RecordedScores
from evalbudget.book import BILL
from evalbudget.cli.main import cli
from evalbudget.errors import AuditStoreError, EvalbudgetError, InvalidInputError, JournalError
from evalbudget.races.prediction._files import save_factors, train_cached
from evalbudget.run import file_of_own
from evalbudget_pairwise import load_preferences


def test_a_full_disk_under_an_audit(tmp_path: Path) -> None:
    told = Told(n_items=30)
    with told.create(tmp_path / "a.sqlite") as store:
        told.draw(store)
        first, *others = store.draws.tasks()
        store.labels.add(first.draw, 5, "ann")
        pages = store._db.rows(text("PRAGMA page_count"))[0][0]
        store._db.rows(text(f"PRAGMA max_page_count = {pages}"))
        rows = [(task.draw, 5.0, f"{i} {'x' * 90}", None) for i in range(40) for task in others]
        with pytest.raises(AuditStoreError, match=r"a\.sqlite cannot be written: .*full\. Make room"):
            store.labels.add_all(rows)
    with AuditStore.open(tmp_path / "a.sqlite") as store:
        assert store.labels.counting()[first.draw].score == 5


@pytest.mark.parametrize("folder", ["/proc", "a file"])
def test_where_nothing_can_be_written(tmp_path: Path, folder: str, small: RecordedScores) -> None:
    place = Path(folder) if folder == "/proc" else tmp_path / "file"
    if folder == "/proc":
        if not place.is_dir():
            pytest.skip("no /proc here")
    else:
        place.write_text("")
    small.save(tmp_path / "scores.npz")
    refused = pytest.raises(JournalError, match=rf"{place}.* cannot be written")
    with refused, file_of_own(place / "run.db", BILL):
        pass
    with pytest.raises(AuditStoreError, match=f"{place}"):
        AuditStore.create(place / "a.sqlite", design())
    for write in (lambda: small.save(place / "x.npz"), lambda: save_factors(place / "f.npz", trained())):
        with pytest.raises(InvalidInputError, match=rf"{place}.* cannot be written"):
            write()
    for option in ("--json", "--html"):
        told = CliRunner().invoke(cli, ["report", f"{tmp_path / 'scores.npz'}", option, f"{place / 'out'}"])
        assert told.exit_code == 2
        assert str(place) in told.output


def test_a_pipe_or_a_device_is_written_to_and_stays(tmp_path: Path, small: RecordedScores) -> None:
    scores, pipe = tmp_path / "scores.npz", tmp_path / "pipe"
    small.save(scores)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    assert CliRunner().invoke(cli, ["report", f"{scores}", "--json", f"{pipe}"]).exit_code == 0
    assert os.read(reader, 1 << 16).startswith(b"{")
    os.close(reader)
    assert pipe.is_fifo()


def test_preferences_in_a_pipe_or_a_device_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "endless.csv").symlink_to("/dev/zero")
    for path in tmp_path.iterdir():
        with pytest.raises(InvalidInputError, match="is no file, but a pipe, a device"):
            load_preferences(path)


def trained(folder: Path | None = None):  # type: ignore[no-untyped-def]
    scores = np.random.default_rng(1).uniform(size=(6, 5))
    return train_cached(scores, list("abcde"), folder=folder or "/proc")


def test_without_a_home_nothing_is_kept_and_everything_works(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "EVALBUDGET_CACHE"):
        monkeypatch.delenv(name, raising=False)

    def nobody(_: int) -> None:
        raise KeyError("uid")

    monkeypatch.setattr(pwd, "getpwuid", nobody)
    scores = np.random.default_rng(1).uniform(size=(6, 5))
    assert train_cached(scores, list("abcde")).items == tuple("abcde")
    assert "Name a folder in EVALBUDGET_CACHE" in caplog.text


def test_commands_without_a_home(tmp_path: Path, small: RecordedScores) -> None:
    small.save(tmp_path / "scores.npz")
    environment = {"PATH": os.environ["PATH"], "EVALBUDGET_DISABLE_PLUGINS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-m", "evalbudget", "report", "scores.npz"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""


def test_a_clock_that_goes_back(tmp_path: Path) -> None:
    clock = Clock()
    with audit(tmp_path / "a.sqlite", clock=clock) as store:
        store.labels.add(0, 5, "ann")
        held = store.leases.next("gone", "bob", seconds=600)
        assert held is not None
        clock.now -= 30 * 86_400
        store.labels.correct(0, 7, "ann")
        store.labels.add(6, 6, "ann")
        assert {draw: label.score for draw, label in store.labels.counting().items()} == {0: 7, 6: 6}
        assert store.leases.count() == 0  # nobody holds a draw for a month because a clock was set
        again = store.leases.next("here", "ann")
        assert again is not None
        assert again.draw == held.draw == 1


def test_what_is_refused_is_our_own_error(tmp_path: Path) -> None:
    with pytest.raises(EvalbudgetError), file_of_own(tmp_path / "no folder" / "run.db", BILL):
        pass
