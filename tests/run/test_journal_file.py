from __future__ import annotations

import json
import logging
import random
import sys
from pathlib import Path

import numpy as np
import pytest

from evalbudget import Cell, Design, Reading, Request
from evalbudget.errors import JournalError
from evalbudget.journal import Event, Header, Journal
from evalbudget.repeats.samplers import EBBernstein
from evalbudget.run import JournalFile, read_journal
from evalbudget.testing import play

DESIGN = Design.of_items(4)


@pytest.fixture
def journal() -> Journal:
    fails = lambda c: None if c.item == 0 and c.epoch < 2 else random.Random(str(c)).gauss(0, 1)  # noqa: E731
    return play(EBBernstein(DESIGN), 30, concurrency=4, order=random.Random(0), score=fails)


@pytest.fixture
def path(tmp_path: Path, journal: Journal) -> Path:
    return write(tmp_path / "run.jsonl", journal)


def write(path: Path, journal: Journal) -> Path:
    assert journal.header is not None
    with JournalFile.create(path, journal.header) as file:
        for event in journal:
            file.append(event)
    return path


def test_round_trip_is_exact(path: Path, journal: Journal) -> None:
    assert read_journal(path) == journal
    with JournalFile.open(path) as file:
        assert file.journal == journal


def test_every_field_survives(tmp_path: Path) -> None:
    request = Request(0, Cell(1, 2, 3, 4), propensity=0.1)
    other = Request(1, Cell(0, 1, 0, 0))
    events = [
        Event(request, restricted=True),
        Event(other, adopted=True),
        Event(other, Reading(other, None, 0.25, 'said "no"\nand\u2028left')),
        Event(request, Reading(request, np.float64(1 / 3), 1e-7)),
    ]
    header = Header({"sampler": "x", "n": np.int64(3), "w": (1.5, np.float32(2))}, "d", "1")
    read = read_journal(write(tmp_path / "j", Journal(header, events)))
    assert read.events == events
    assert read.header == Header({"sampler": "x", "n": 3, "w": [1.5, 2.0]}, "d", "1")


def test_events_are_in_the_file_at_once(tmp_path: Path, journal: Journal) -> None:
    assert journal.header is not None
    with JournalFile.create(tmp_path / "j", journal.header) as file:
        file.append(journal.events[0])
        assert len(read_journal(tmp_path / "j")) == 1


def test_create_does_not_overwrite(path: Path, journal: Journal) -> None:
    before = path.read_bytes()
    assert journal.header is not None
    with pytest.raises(JournalError, match="exists"):
        JournalFile.create(path, journal.header)
    assert path.read_bytes() == before


def test_a_torn_last_line_is_dropped_wherever_it_is_torn(
    tmp_path: Path, path: Path, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    data = path.read_bytes()
    last = data[:-1].rfind(b"\n") + 1
    for cut in range(last + 1, len(data)):
        torn = tmp_path / f"torn{cut}"
        torn.write_bytes(data[:cut])
        with caplog.at_level(logging.WARNING):
            assert read_journal(torn).events == journal.events[:-1]
        assert "cut off" in caplog.text
        caplog.clear()
        with JournalFile.open(torn) as file:
            file.append(journal.events[-1])
        assert torn.read_bytes() == data


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"ask": 30, "cell": [0, 0, 9', "damaged"),
        ("[]", "not a JSON object"),
        ("", "damaged"),
        ("{}", "no 'tell'"),
        ('{"ask": 31, "cell": [0, 0, 9, 0]}', "lines are missing"),
        ('{"ask": 30, "cell": [0, 0, 9]}', "not .model, item, epoch, rater"),
        ('{"ask": 30, "cell": [0, 0, 9.5, 0]}', "not .model, item, epoch, rater"),
        ('{"ask": 30}', "no 'cell'"),
        ('{"tell": 30, "value": 1, "cost": 1}', "not asked before"),
        ('{"tell": "0", "value": 1, "cost": 1}', "not asked before"),
        ('{"tell": 0, "value": 1, "cost": 1}', "a second reading"),
    ],
)
def test_other_damage_names_file_and_line(path: Path, line: str, complaint: str) -> None:
    with path.open("a") as stream:
        stream.write(line + "\n")
    with pytest.raises(JournalError, match=rf"run.jsonl, line 62.*{complaint}"):
        read_journal(path)
    with pytest.raises(JournalError, match="line 62"):
        JournalFile.open(path)


@pytest.mark.parametrize(
    "entry",
    [
        {"value": "high", "cost": 1},
        {"value": 1, "cost": -1},
        {"value": 1},
        {"cost": 1},
        {"value": [], "cost": 1},
    ],
)
def test_damaged_readings(tmp_path: Path, entry: dict[str, object]) -> None:
    header = {"evalbudget": "journal", "format": 1, "version": "1", "design": "d", "config": {}}
    lines = [header, {"ask": 0, "cell": [0, 0, 0, 0]}, {"tell": 0, **entry}]
    path = tmp_path / "j"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(JournalError, match="j, line 3 is damaged"):
        read_journal(path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not an evalbudget journal"),
        ('{"evalbudget": "jour', "not an evalbudget journal"),
        ('{"id": 1}\n', "line 1: this is not an evalbudget journal"),
        ("item,score\n", "line 1 is damaged"),
        ("\x00\x01\n", "line 1 is damaged"),
        ('{"evalbudget": "journal", "format": 2, "version": "9.0"}\n', r"format 2 \(evalbudget 9.0\)"),
        ('{"evalbudget": "journal"}\n', "no 'format'"),
        ('{"evalbudget": "journal", "format": 1, "design": "", "version": "", "config": 1}\n', "config"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "other"
    path.write_text(text)
    with pytest.raises(JournalError, match=complaint):
        read_journal(path)
    assert path.read_text() == text


def test_missing_files_and_folders(tmp_path: Path, journal: Journal) -> None:
    assert journal.header is not None
    with pytest.raises(JournalError, match="cannot be read"):
        read_journal(tmp_path / "none")
    with pytest.raises(JournalError, match="cannot be opened"):
        JournalFile.open(tmp_path / "none")
    with pytest.raises(JournalError, match="cannot be written"):
        JournalFile.create(tmp_path / "none" / "j", journal.header)


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_two_writers_are_refused(path: Path) -> None:
    with JournalFile.open(path), pytest.raises(JournalError, match="another process"):
        JournalFile.open(path)
    JournalFile.open(path).close()
