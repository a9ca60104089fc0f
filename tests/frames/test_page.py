"""docs/frames.md: its columns are those of the code, and its examples run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from tests.frames.worlds import plain

from evalbudget.frames import COLUMNS, Scores

PAGE = Path(__file__).parents[2] / "docs" / "frames.md"


def test_the_columns_are_those_of_the_code() -> None:
    spec = importlib.util.spec_from_file_location("write_frames", PAGE.with_name("write_frames.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = PAGE.read_text(encoding="utf-8")
    assert module.with_tables(text) == text, "run python docs/write_frames.py"
    for columns in COLUMNS.values():
        assert all(f"`{column.name}`" in text for column in columns)


def test_a_person_reads_the_page() -> None:
    words = re.findall(r"[\w'.]*\w", PAGE.read_text(encoding="utf-8"))
    assert len(words) < 800


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed").switch_backend("agg")
    monkeypatch.chdir(tmp_path)
    table = Scores(plain(2, 20, 1, 3)).readings(frame="pandas")
    table["model"] = table["model"].map({"model 0": "a", "model 1": "b"})
    table.to_csv("scores.csv", index=False)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 3
    exec("\n".join(blocks), {})
