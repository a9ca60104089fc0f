"""A process that dies at any moment loses nothing that was acknowledged, and leaves nothing by halves."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.audits.store.audits import audit, design, drawn

import warm
from evalbudget.audits.store import AuditStore
from evalbudget.store import Address

_WORK = """
import sys
from evalbudget.audits.store import AuditStore
from tests.audits.store.audits import design, drawn

with AuditStore.open(sys.argv[1], design()) as store:
    print("ready", flush=True)
    while True:
        count = len(store.draws.all())
        store.draws.append(drawn(range(count // 2, min(count // 2 + 2, 30)), start=count, wanted=bool))
        print("drawn", len(store.draws.all()), flush=True)
        task = store.leases.next("s", "ann")
        store.labels.add(task.draw, 1 + task.draw % 10, "ann")
        print("labelled", task.draw, flush=True)
        if count >= 56:
            break
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_nothing_acknowledged_is_lost_when_the_process_is_killed(place: Callable[[str], Address]) -> None:
    address = place("a")
    AuditStore.create(address, design()).close()
    root = Path(__file__).resolve().parents[3]
    killed = 0
    for round_ in range(2):
        command = [sys.executable, "-c", _WORK, str(address)]
        process = warm.Popen(command, host="core", stdout=subprocess.PIPE, text=True, cwd=root)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.004 + 0.008 * round_)
        process.send_signal(signal.SIGKILL)
        said = [line.split() for line in process.stdout.read().splitlines()]
        process.stdout.close()
        killed += process.wait() == -signal.SIGKILL
        with AuditStore.open(address, design()) as store:
            acknowledged = [int(number) for what, number in said if what == "drawn"]
            assert len(store.draws.all()) >= max(acknowledged, default=0)
            assert len(store.draws.all()) % 4 == 0  # batches of four, never a part of one
            labels = store.labels.counting()
            assert {int(number) for what, number in said if what == "labelled"} <= set(labels)
            assert all(label.score == 1 + draw % 10 for draw, label in labels.items())
            assert [draw.index for draw in store.draws.all()] == list(range(len(store.draws.all())))
        if address.path is not None:
            raw = sqlite3.connect(address.path)
            assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            raw.close()
    assert killed


def test_a_write_cut_off_in_the_middle_leaves_what_was_there(tmp_path: Path) -> None:
    """Killed inside the transaction, with the file already written to: the journal beside it undoes that."""
    path = tmp_path / "a.audit"
    audit(path).close()
    code = (
        "import os, sqlite3, sys\n"
        "db = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "db.execute('PRAGMA cache_spill = 1'); db.execute('PRAGMA cache_size = 1'); db.execute('BEGIN')\n"
        "for i in range(400):\n"
        "    db.execute('INSERT INTO contexts VALUES (?, 0, 0, ?)', (100 + i, 'x' * 2000))\n"
        "os._exit(9)\n"
    )
    size = path.stat().st_size
    assert subprocess.run([sys.executable, "-c", code, str(path)], check=False).returncode == 9
    assert path.stat().st_size > size
    with AuditStore.open(path, design()) as store:
        assert len(store.draws.all()) == 18
        store.labels.add(0, 5, "ann")
        store.draws.append(drawn(range(9, 10), start=18))
    raw = sqlite3.connect(path)
    assert raw.execute("SELECT count(*) FROM contexts").fetchone() == (10,)
    raw.close()
