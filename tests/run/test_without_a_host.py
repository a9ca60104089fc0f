"""The way in without a host: a path as journal, and the example as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from evalbudget import Request
from evalbudget.design import Design
from evalbudget.errors import BudgetError, InvalidInputError, JournalError
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.repeats.samplers import EBBernstein
from evalbudget.run import JournalFile, drive
from evalbudget.testing import gaussian

EXAMPLE = Path(__file__).parents[2] / "examples" / "without_a_host.py"
DESIGN = Design.of_items(5)


def test_the_example_runs_and_runs_again_for_nothing(tmp_path: Path) -> None:
    outputs = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(EXAMPLE)], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0].startswith("spent 600; estimate ")
    assert outputs[1] == outputs[0]
    assert len((tmp_path / "without_a_host.jsonl").read_text().splitlines()) >= 1 + 2 * 600


def test_a_journal_by_its_path_is_begun_and_continued(tmp_path: Path) -> None:
    path, asked = tmp_path / "run.jsonl", []

    async def answer(request: Request) -> float:
        asked.append(request)
        if len(asked) == 42:
            raise InvalidInputError("a mistake of the caller")
        return gaussian(request.cell)

    def buy(budget: int) -> float:
        return anyio.run(lambda: drive(EBBernstein(DESIGN), answer, budget=budget, journal=path)).spent

    with pytest.raises(BudgetError, match="below"):
        buy(1)
    assert not path.exists()
    assert buy(30) == len(asked) == 30
    with pytest.raises(InvalidInputError, match="mistake"):
        buy(100)
    with JournalFile.open(path) as file:  # let go by the run that was broken off
        known = file.journal.spent
    assert 30 <= known < 100
    assert buy(100) == 100
    with JournalFile.open(path) as file:
        readings = ItemReadings.of_bought(file.journal.readings, 5)
    assert readings.value.size == 100
    assert readings.knows_phases
    with pytest.raises(JournalError, match="another configuration"):
        anyio.run(lambda: drive(EBBernstein(DESIGN, seed=1), answer, budget=200, journal=path))
