"""Every section of benchmarks/racing.py runs at a tiny size, and the page shows what was printed."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from tests.benchmarks.quick import check_table, save, warm_starts, written
from tests.claims import variant

SECTIONS = (
    "identification",
    "draws",
    "until-right",
    "until-proved",
    "plans",
    "wrong-winners",
    "histories",
    "matrices",
    "rivals",
    "new-model",
    "visit",
    "visit-misled",
    "visit-until",
    "one-score",
    "widths",
    "coverage",
    "scale",
)
SLOW = {
    *("identification", "draws", "until-right", "plans", "histories"),
    *("new-model", "visit-misled", "visit-until", "scale"),
}


@pytest.fixture(scope="module", autouse=True)
def _recorded(data: Path) -> None:
    """Stand-ins for the real matrices, in their layout."""
    rng = np.random.default_rng(0)
    for file in ("cruxeval_models", "alpacaeval_models"):
        scores = (rng.random((6, 50, 1, 1)) < np.linspace(0.3, 0.8, 6)[:, None, None, None]).astype(
            np.float32
        )
        save(data, file, scores, raters=["exact"])
    ratings = rng.integers(1, 11, size=(1, 12, 3, 4)).astype(np.float32)
    save(data, "judge_repeats", ratings, models=["m"])
    factors = {"U": rng.normal(size=(60, 4)), "V": rng.normal(size=(400, 4))}
    np.savez(data / "leaderboard_factors.npz", allow_pickle=False, **factors)


@pytest.mark.parametrize("section", [variant(name) if name in SLOW else name for name in SECTIONS])
def test_a_section_runs_and_is_rendered(section: str, tmp_path: Path) -> None:
    with warm_starts("racing_sections.scale"):
        kept, page, _ = written("racing", section, docs=tmp_path, page="races")
    check_table(kept[section], page)


def test_all_sections_are_tested() -> None:
    assert set(SECTIONS) == set(importlib.import_module("racing").PAGE.sections)
