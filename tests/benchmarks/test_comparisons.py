"""Every section of benchmarks/comparisons.py runs at a tiny size; worlds have the difference they say."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ["gates", "these-items", "compared", "until"]


@pytest.fixture(autouse=True)
def importable() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield


@pytest.mark.variant
def test_every_section_at_a_tiny_size(tmp_path: Path) -> None:
    comparisons = importlib.import_module("comparisons")
    told = CliRunner().invoke(comparisons.main, ["all", "--quick", "--write-docs", "--docs", str(tmp_path)])
    assert told.exit_code == 0, told.output
    kept = json.loads((tmp_path / "results" / "comparisons.json").read_text())
    assert list(kept) == SECTIONS
    page = (tmp_path / "comparisons.md").read_text()
    for entry in kept.values():
        assert all(" | ".join(row) in page for row in entry["rows"])
        assert entry["targets"]


@pytest.mark.parametrize("times", [-2, -1, 0, 1])
def test_worlds_have_the_difference_they_say(times: int) -> None:
    worlds = importlib.import_module("comparisons_sections.worlds").WORLDS
    for name, world in worlds.items():
        drawn = world.draw(np.random.default_rng(1), 400_000, times * world.margin)
        difference = drawn.candidate - drawn.baseline
        error = difference.std() / np.sqrt(difference.size) * (4.0 if drawn.cluster is not None else 1.0)
        assert abs(difference.mean() - times * world.margin) < 4.0 * error, name
        for scores in (drawn.baseline, drawn.candidate):
            assert 0.0 <= scores.min() <= scores.max() <= 1.0, name


def test_a_fixed_test_of_known_variance_is_planned_as_in_the_textbook() -> None:
    gates = importlib.import_module("comparisons_sections.gates")
    world = importlib.import_module("comparisons_sections.worlds").WORLDS["pass or fail"]
    found = gates.needed(world, 0.9, 0.05, np.random.default_rng(0))
    assert found == pytest.approx((1.644854 + 1.281552) ** 2 * 0.25 / 0.05**2, rel=0.02)


def test_pools_have_exactly_the_difference_that_is_asked_for() -> None:
    gates = importlib.import_module("comparisons_sections.gates")
    world = importlib.import_module("comparisons_sections.worlds").WORLDS["pass or fail"]
    for delta in (0.0, -0.05, 0.1):
        made = gates._exactly(world.draw(np.random.default_rng(2), 400, delta), delta)
        assert (made.candidate - made.baseline).mean() == pytest.approx(delta)
