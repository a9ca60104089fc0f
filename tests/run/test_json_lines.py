from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from evalbudget.run._json_lines import LinesFile, read_line, whole_lines


def entries_in(path: Path) -> list[dict[str, Any]]:
    """As a host reads them."""
    lines, _ = whole_lines(path.read_bytes(), path)
    return [read_line(line, f"{path}, line {number}", dict) for number, line in enumerate(lines, start=1)]


def test_a_torn_last_line_is_dropped_wherever_it_is_torn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written = [{"n": 1}, {"said": 'a "b"\nand\u2028left'}, {"of": ["é", 7]}]
    lines = LinesFile.create(tmp_path / "whole")
    for number, entry in enumerate(written, start=1):
        lines.append(entry)
        assert len(entries_in(tmp_path / "whole")) == number  # at once
    lines.close()
    data = (tmp_path / "whole").read_bytes()
    assert entries_in(tmp_path / "whole") == written
    for cut in range(data[:-1].rfind(b"\n") + 2, len(data)):
        torn = tmp_path / f"torn{cut}"
        torn.write_bytes(data[:cut])
        with caplog.at_level(logging.WARNING):
            assert entries_in(torn) == written[:-1]
        assert "cut off" in caplog.text
        caplog.clear()
