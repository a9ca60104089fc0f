"""Every section of benchmarks/audits.py runs at a tiny size, and the page shows what was printed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.benchmarks.quick import ROOT, check_table, save, written

SECTIONS = (
    "environments",
    "small",
    "nulls",
    "small-nulls",
    "one-system",
    "batches",
    "hanna",
)


@pytest.fixture(scope="module", autouse=True)
def _recorded(data: Path) -> None:
    """A stand-in for the real recording, in its layout."""
    rng = np.random.default_rng(0)
    human = np.clip(np.linspace(4, 2, 4)[:, None, None] + rng.standard_normal((4, 30, 3)), 1, 5)
    scores = np.clip(human.mean(axis=2)[:, :, None, None] + 0.3 * rng.standard_normal((4, 30, 5, 1)), 1, 5)
    save(data, "hanna_multijudge", scores, reference=human)


@pytest.mark.variant
def test_every_section_runs_and_is_written(tmp_path: Path) -> None:
    kept, page, _ = written("audits", "all", docs=tmp_path)
    assert tuple(kept) == SECTIONS
    for name, section in kept.items():
        assert f"## {name}" in page
        check_table(section, page)
        assert section["targets"]


def test_the_committed_page_has_every_section() -> None:
    kept = json.loads((ROOT / "benchmarks" / "results" / "audits.json").read_text(encoding="utf-8"))
    assert set(kept) == set(SECTIONS)
