"""Every section of benchmarks/load.py runs at a tiny size, and the page shows what was printed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.benchmarks.quick import check_table, warm_starts, written

SECTIONS = ["book", "concurrent", "items", "race", "arms", "slow"]


@pytest.mark.variant
def test_every_section_at_a_tiny_size(tmp_path: Path) -> None:
    with warm_starts("load_sections.sizes"):
        kept, page, _ = written("load", "all", docs=tmp_path)
    assert list(kept) == SECTIONS
    for section, entry in kept.items():
        assert f"`python benchmarks/load.py {section} --quick --write-docs`" in page
        check_table(entry, page)
        assert entry["targets"]
    spent = next(t for t in kept["concurrent"]["targets"] if t["text"] == "exactly the budget is spent")
    assert spent["reached"]
