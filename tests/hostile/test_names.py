"""Markup, HTML and control characters in names are shown as they stand, wherever they are printed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from evalbudget.backtest import RecordedScores
from evalbudget.cli.main import cli

SCRIPT = "<script>alert(1)</script>"
MODELS = ("[red]a[/]", "[/]", SCRIPT, "\x1b[2Jc", "\x9b2J", "[link=http://x]l[/link]", "$`|*m*|$")


@pytest.fixture
def scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    values = np.random.default_rng(0).integers(0, 5, (len(MODELS), 8, 2, 4)).astype(float)
    items = tuple(f"[x{i}] <i>" for i in range(8))
    categories = ("[/q]", "<u>") * 4
    RecordedScores(values, MODELS, items, ("[/bold]r", "<b>s"), categories=categories).save("scores.npz")
    return "scores.npz"


def test_the_report(scores: str) -> None:
    told = CliRunner().invoke(cli, ["report", scores, "--html", "page.html"], env={"COLUMNS": "200"})
    assert told.exit_code == 0, told.output
    for name in ("[red]a[/]", "[/]", SCRIPT, "\\x1b[2Jc", "[link=http://x]l[/link]"):
        assert name in told.output
    page = Path("page.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in page
    for text in (told.output, page):
        assert not {"\x1b", "\x9b"} & set(text)


@pytest.mark.parametrize("model", MODELS)
def test_refusals_and_backtests(scores: str, model: str) -> None:
    for command in (
        ["report", scores, "--model", f"{model}!"],
        ["plan", scores, "--model", model, "--half-width", "0.1"],
        ["backtest", "judges", scores, "--model", model, "--seeds", "1"],
        ["report", f"{model.replace('/', '')}.npz"],
    ):
        told = CliRunner().invoke(cli, command)
        assert told.exit_code in (0, 2), told.exception
        assert told.exit_code != 2 or "\x1b[2J" not in told.stderr
