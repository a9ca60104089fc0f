"""Every section of benchmarks/load.py runs at a tiny size, and the page shows what was printed."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = ["journal", "concurrent", "items", "race"]


def test_every_section_at_a_tiny_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    load = importlib.import_module("load")
    told = CliRunner().invoke(load.main, ["all", "--quick", "--write-docs", "--docs", str(tmp_path)])
    assert told.exit_code == 0, told.output
    kept = json.loads((tmp_path / "results" / "load.json").read_text())
    assert list(kept) == SECTIONS
    page = (tmp_path / "load.md").read_text()
    for section, entry in kept.items():
        assert f"`python benchmarks/load.py {section} --quick --write-docs`" in page
        assert all(" | ".join(row) in page for row in entry["rows"])
        assert entry["targets"]
    spent = next(t for t in kept["concurrent"]["targets"] if t["text"] == "exactly the budget is spent")
    assert spent["reached"]
