"""Every section of benchmarks/judges.py runs at a tiny size, and the page shows what was printed."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Stand-ins for the real ratings, in their layout."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for name, models, judges, repeats in (("judge_repeats", 1, 5, 8), ("hanna_multijudge", 2, 4, 1)):
        bias = np.linspace(-1, 1, judges)[:, None]
        scores = rng.normal(6.0, 1.0, size=(models, 60, 1, 1)) + bias
        scores = np.clip(np.rint(scores + rng.normal(size=(models, 60, judges, repeats))), 1, 10)
        axes = {"models": models, "items": 60, "raters": judges}
        names = {axis: [f"{axis} {i}" for i in range(n)] for axis, n in axes.items()}
        human = {"reference": rng.normal(6.0, 1.0, size=(models, 60, 3))} if models > 1 else {}
        np.savez(
            folder / f"{name}.npz", allow_pickle=False, scores=scores.astype(np.float32), **names, **human
        )
    return folder


@pytest.fixture(scope="module", autouse=True)
def importable(recorded: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        patch.setenv("EVALBUDGET_DATA", str(recorded))
        yield


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(importlib.import_module("judges").main, arguments, catch_exceptions=False)


SECTIONS = ("interaction", "predictions", "real", "prices", "repeats", "period", "speed")


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_runs_and_is_rendered(section: str, tmp_path: Path) -> None:
    result = invoke(section, "--quick", "--write-docs", "--docs", str(tmp_path))
    assert result.exit_code == 0
    found = json.loads((tmp_path / "results" / "judges.json").read_text(encoding="utf-8"))[section]
    assert found["rows"]
    assert all(len(row) == len(found["columns"]) for row in found["rows"])
    assert "reached" in result.output
    page = (tmp_path / "judges.md").read_text(encoding="utf-8")
    assert f"`python benchmarks/judges.py {section} --quick --write-docs`" in page
    for row in found["rows"]:
        assert "| " + " | ".join(row) + " |" in page


def test_all_sections_are_tested() -> None:
    assert set(SECTIONS) == set(importlib.import_module("judges").PAGE.sections)


def test_without_recorded_scores_nothing_is_claimed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALBUDGET_DATA", str(tmp_path / "none"))
    result = invoke("real", "--quick")
    assert result.exit_code == 0
    assert "not measured" in result.output
