"""SECURITY.md names a test for each thing that is held, and the test is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_what_is_held_is_held_by_a_test_that_exists() -> None:
    table = (ROOT / "SECURITY.md").read_text().partition("| what is held |")[2]
    rows = [line for line in table.splitlines()[2:] if line.startswith("|")]
    assert len(rows) > 10
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", row)
        assert named, row
        for path, name in named:
            assert f"def {name}" in (ROOT / path).read_text(), row
