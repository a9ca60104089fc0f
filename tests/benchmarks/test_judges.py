"""Every section of benchmarks/judges.py runs at a tiny size, and the page shows what was printed."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from tests.benchmarks.quick import check_table, save, written
from tests.claims import variant


@pytest.fixture(scope="module", autouse=True)
def _recorded(data: Path) -> None:
    """Stand-ins for the real ratings, in their layout."""
    rng = np.random.default_rng(0)
    for name, models, judges, repeats in (("judge_repeats", 1, 5, 8), ("hanna_multijudge", 2, 4, 1)):
        bias = np.linspace(-1, 1, judges)[:, None]
        scores = rng.normal(6.0, 1.0, size=(models, 60, 1, 1)) + bias
        scores = np.clip(np.rint(scores + rng.normal(size=(models, 60, judges, repeats))), 1, 10)
        human = {"reference": rng.normal(6.0, 1.0, size=(models, 60, 3))} if models > 1 else {}
        save(data, name, scores.astype(np.float32), **human)


SECTIONS = ("interaction", "predictions", "real", "prices", "repeats", "period", "speed")


@pytest.mark.parametrize("section", [s if s == SECTIONS[0] else variant(s) for s in SECTIONS])
def test_a_section_runs_and_is_rendered(section: str, tmp_path: Path) -> None:
    kept, page, told = written("judges", section, docs=tmp_path)
    check_table(kept[section], page)
    assert "reached" in told
    assert f"`python benchmarks/judges.py {section} --quick --write-docs`" in page


def test_all_sections_are_tested() -> None:
    assert set(SECTIONS) == set(importlib.import_module("judges").PAGE.sections)
