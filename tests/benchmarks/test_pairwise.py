"""Every section of benchmarks/pairwise.py runs at a tiny size; judges are as biased as they say."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ["coverage", "judges", "orders", "winners"]


@pytest.fixture(autouse=True)
def importable() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield


@pytest.mark.variant
def test_every_section_at_a_tiny_size(tmp_path: Path) -> None:
    pairwise = importlib.import_module("pairwise")
    told = CliRunner().invoke(pairwise.main, ["all", "--quick", "--write-docs", "--docs", str(tmp_path)])
    assert told.exit_code == 0, told.output
    kept = json.loads((tmp_path / "results" / "pairwise.json").read_text())
    assert list(kept) == SECTIONS
    page = (tmp_path / "pairwise.md").read_text()
    for entry in kept.values():
        assert all(" | ".join(row) in page for row in entry["rows"])
        assert entry["targets"]


@pytest.mark.parametrize("whim", [0.0, 0.5])
def test_judges_have_the_rates_and_the_bias_they_say(whim: float) -> None:
    worlds = importlib.import_module("pairwise_sections.worlds")
    world = worlds.World((0.8, 0.1, -0.6), 0.5, 0.2, agreement=0.3, whim=whim)
    n = 100_000
    value = world.values(n, 1)
    pairs = list(permutations(range(3), 2))
    for a, b in pairs:
        rate = float((value[a, b] + 1.0 - value[b, a]).mean() / 2.0)
        assert rate == pytest.approx(world.rate(a, b), abs=4.0 * 0.5 / np.sqrt(n))
        one, other = value[a, b], 1.0 - value[b, a]
        assert (np.corrcoef(one, other)[0, 1] > 0.0) == (whim == 0.0)
        assert float((value[a, b] == 0.5).mean()) == pytest.approx(0.2, abs=0.01)
    bias = float(np.mean([value[a, b].mean() for a, b in pairs]) - 0.5)
    assert bias == pytest.approx(world.bias, abs=0.005)
