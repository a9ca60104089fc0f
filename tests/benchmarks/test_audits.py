"""Every section of benchmarks/audits.py runs at a tiny size, and the page shows what was printed."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = (
    "environments",
    "small",
    "nulls",
    "small-nulls",
    "one-system",
    "batches",
    "hanna",
)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in for the real recording, in its layout."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    human = np.clip(np.linspace(4, 2, 4)[:, None, None] + rng.standard_normal((4, 60, 3)), 1, 5)
    scores = np.clip(human.mean(axis=2)[:, :, None, None] + 0.3 * rng.standard_normal((4, 60, 5, 1)), 1, 5)
    names = {
        axis: [f"{axis} {i}" for i in range(n)] for axis, n in (("models", 4), ("items", 60), ("raters", 5))
    }
    np.savez(folder / "hanna_multijudge.npz", allow_pickle=False, scores=scores, reference=human, **names)
    return folder


@pytest.fixture(scope="module", autouse=True)
def importable(recorded: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        patch.setenv("EVALBUDGET_DATA", str(recorded))
        yield


def test_every_section_runs_and_is_written(tmp_path: Path) -> None:
    main = importlib.import_module("audits").main
    result = CliRunner().invoke(main, ["all", "--quick", "--write-docs", "--docs", str(tmp_path)])
    assert result.exit_code == 0, (result.output, result.exception)
    kept = json.loads((tmp_path / "results" / "audits.json").read_text(encoding="utf-8"))
    assert tuple(kept) == SECTIONS
    page = (tmp_path / "audits.md").read_text(encoding="utf-8")
    for name, section in kept.items():
        assert f"## {name}" in page
        assert section["rows"]
        assert all(len(row) == len(section["columns"]) for row in section["rows"])
        assert section["targets"]


def test_the_committed_page_has_every_section() -> None:
    kept = json.loads((ROOT / "benchmarks" / "results" / "audits.json").read_text(encoding="utf-8"))
    assert set(kept) == set(SECTIONS)
