from __future__ import annotations

import json
import logging
import random
from pathlib import Path

import numpy as np
import pytest

from evalbudget import Cell, Design, Reading, Request
from evalbudget.errors import JournalError
from evalbudget.journal import Event, Header, Journal
from evalbudget.repeats.samplers import EBBernstein
from evalbudget.run import JournalFile, JournalReader, LinesFile, read_line, whole_lines
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
    lines = LinesFile.create(path)
    file = JournalFile(Journal(), lines)
    for event in journal:
        file.append(event)
    lines.close()
    assert file.journal.events == list(journal)
    return path


def read_journal(path: Path) -> Journal:
    """As a host reads the lines among its own."""
    lines, _ = whole_lines(path.read_bytes(), path)
    reader = JournalReader(Header({}, "d", "1"))
    for number, line in enumerate(lines, start=1):
        read_line(line, f"{path}, line {number}", reader.take)
    return reader.journal


def test_round_trip_is_exact(path: Path, journal: Journal) -> None:
    assert read_journal(path).events == journal.events


def test_every_field_survives(tmp_path: Path) -> None:
    request = Request(0, Cell(1, 2, 3, 4), propensity=0.1)
    other = Request(1, Cell(0, 1, 0, 0))
    events = [
        Event(request, restricted=True),
        Event(other, adopted=True),
        Event(other, Reading(other, None, 0.25, 'said "no"\nand\u2028left')),
        Event(request, Reading(request, np.float64(1 / 3), 1e-7)),
    ]
    assert read_journal(write(tmp_path / "j", Journal(None, events))).events == events


def test_events_are_in_the_file_at_once(tmp_path: Path, journal: Journal) -> None:
    lines = LinesFile.create(tmp_path / "j")
    JournalFile(Journal(), lines).append(journal.events[0])
    assert len(read_journal(tmp_path / "j")) == 1
    lines.close()


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
    with pytest.raises(JournalError, match=rf"run.jsonl, line 61.*{complaint}"):
        read_journal(path)


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
    lines = [{"ask": 0, "cell": [0, 0, 0, 0]}, {"tell": 0, **entry}]
    path = tmp_path / "j"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with pytest.raises(JournalError, match="j, line 2 is damaged"):
        read_journal(path)
