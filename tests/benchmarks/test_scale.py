"""Every section of benchmarks/scale.py runs at a tiny size."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.benchmarks.quick import check_table, warm_starts, written

SECTIONS = ["processes", "workers", "contention"]


@pytest.mark.variant
def test_every_section_at_a_tiny_size(tmp_path: Path) -> None:
    with warm_starts("scale_sections.workers"):
        kept, page, _ = written("scale", "all", docs=tmp_path)
    assert list(kept) == SECTIONS
    for entry in kept.values():
        check_table(entry, page)
        assert entry["targets"]
    assert kept["workers"]["targets"][0]["reached"]
    assert kept["processes"]["targets"][2]["reached"]
