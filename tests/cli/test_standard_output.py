"""``-`` is standard output, and then nothing else is printed there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import Result
from tests.cli.commands import refused, typed

from evalbudget.comparisons import read_baseline


@pytest.fixture
def gate(tmp_path: Path) -> Callable[..., Result]:
    """The gate of a table with itself."""
    path = tmp_path / "scores.csv"
    path.write_text("item,score\n" + "".join(f"q{i},{i % 2}\n" for i in range(40)))
    return typed("gate", "--baseline", str(path), "--margin", "0.3", "--candidate", str(path))


@pytest.mark.parametrize(
    ("option", "begins"), [("--json", "{"), ("--markdown", "### ✅ Not worse"), ("--junit", "<")]
)
def test_a_verdict(gate: Callable[..., Result], option: str, begins: str, tmp_path: Path) -> None:
    done = gate(option, "-")
    assert done.exit_code == 0, done.output
    written = tmp_path / "written"
    assert gate(option, written).stdout.startswith("Not worse")
    assert done.stdout == written.read_text()
    assert done.stdout.startswith(begins)
    if option == "--junit":
        ElementTree.fromstring(done.stdout)


def test_one_thing_at_a_time(gate: Callable[..., Result]) -> None:
    refused(gate("--json", "-", "--junit", "-"), "--json and --junit are both -, standard output")
    refused(gate("--save-baseline", "-"), "standard output, where the verdict goes")


def test_a_baseline_and_a_page(gate: Callable[..., Result], tmp_path: Path) -> None:
    table = tmp_path / "baseline.csv"
    table.write_text(typed("gate")("--baseline", tmp_path / "scores.csv", "--save-baseline", "-").stdout)
    assert len(read_baseline(table).scores) == 40
    table.write_text('item,score\n::error::a,1\n"b\n::error::c",0\n', encoding="utf-8")
    told = typed("gate")("--baseline", table, "--save-baseline", "-").stdout
    assert not any(line.strip().startswith("::") for line in told.splitlines())
    table.write_text(told, encoding="utf-8")
    assert set(read_baseline(table).scores) == {"::error::a", "b\n::error::c"}
    page = typed("report")(tmp_path / "scores.csv", "--html", "-").stdout
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
