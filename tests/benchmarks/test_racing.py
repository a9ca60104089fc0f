"""Every section of benchmarks/racing.py runs at a tiny size, and the page shows what was printed."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

ROOT = Path(__file__).resolve().parents[2]
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


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand-ins for the real matrices, in their layout."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for file in ("cruxeval_models", "alpacaeval_models"):
        scores = (rng.random((6, 80, 1, 1)) < np.linspace(0.3, 0.8, 6)[:, None, None, None]).astype(
            np.float32
        )
        names = {axis: [f"{axis} {i}" for i in range(n)] for axis, n in (("models", 6), ("items", 80))}
        np.savez(folder / f"{file}.npz", allow_pickle=False, scores=scores, raters=["exact"], **names)
    ratings = rng.integers(1, 11, size=(1, 12, 3, 4)).astype(np.float32)
    names = {axis: [f"{axis} {i}" for i in range(n)] for axis, n in (("items", 12), ("raters", 3))}
    np.savez(folder / "judge_repeats.npz", allow_pickle=False, scores=ratings, models=["m"], **names)
    factors = {"U": rng.normal(size=(120, 4)), "V": rng.normal(size=(400, 4))}
    np.savez(folder / "leaderboard_factors.npz", allow_pickle=False, **factors)
    return folder


@pytest.fixture(scope="module", autouse=True)
def importable(recorded: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        patch.setenv("EVALBUDGET_DATA", str(recorded))
        patch.setenv("EVALBUDGET_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(importlib.import_module("racing").main, arguments, catch_exceptions=False)


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_runs_and_is_rendered(section: str, tmp_path: Path) -> None:
    result = invoke(section, "--quick", "--write-docs", "--docs", str(tmp_path))
    assert result.exit_code == 0
    found = json.loads((tmp_path / "results" / "races.json").read_text(encoding="utf-8"))[section]
    assert found["rows"]
    assert all(len(row) == len(found["columns"]) for row in found["rows"])
    page = (tmp_path / "races.md").read_text(encoding="utf-8")
    for row in found["rows"]:
        assert "| " + " | ".join(row) + " |" in page


def test_all_sections_are_tested() -> None:
    assert set(SECTIONS) == set(importlib.import_module("racing").PAGE.sections)
