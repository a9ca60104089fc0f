"""A run that is killed at any moment continues from its file to exactly the budget."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from evalbudget import resume
from evalbudget.run import read_journal

SCRIPT = """
import random, sys
from pathlib import Path
import anyio
from evalbudget import Design, resume
from evalbudget.journal import Header
from evalbudget.run import JournalFile, drive
from evalbudget.repeats.samplers import EBBernstein
from evalbudget.testing import gaussian

async def answer(request):
    await anyio.sleep(random.uniform(0, 0.02))
    if random.random() < 0.05:
        raise OSError("lost")
    return gaussian(request.cell)

path = Path(sys.argv[1])
sampler = EBBernstein(Design.of_items(6), seed=4)
if path.exists():
    file = JournalFile.open(path)
    resume(sampler, file.journal)
else:
    file = JournalFile.create(path, Header.of(sampler, "test"))
with file:
    anyio.run(lambda: drive(sampler, answer, budget=400, concurrency=5, journal=file))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_kill_9_and_resume(tmp_path: Path) -> None:
    from evalbudget import Design
    from evalbudget.repeats.samplers import EBBernstein

    path = tmp_path / "run.jsonl"
    command = [sys.executable, "-c", SCRIPT, str(path)]
    for size in (2_000, 9_000):
        process = subprocess.Popen(command)
        deadline = time.monotonic() + 60
        while (not path.exists() or path.stat().st_size < size) and time.monotonic() < deadline:
            time.sleep(0.002)
        assert process.poll() is None, "it should still be running"
        process.kill()
        process.wait()
    data = path.read_bytes()
    path.write_bytes(data[: data[:-1].rfind(b"\n") + 9])  # as if killed in the middle of a write
    subprocess.run(command, check=True, timeout=300)

    journal = read_journal(path)
    assert journal.spent == len(journal.readings) == 400
    assert journal.pending == ()
    assert len({reading.request.cell for reading in journal.readings}) == 400
    resume(EBBernstein(Design.of_items(6), seed=4), journal)
