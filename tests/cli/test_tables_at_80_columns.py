"""Tables at 80 columns, with names as long as they come: nothing that a wide terminal shows is missing."""

from __future__ import annotations

import csv
import random
import re
from collections import Counter
from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from evalbudget.cli.main import cli

# no digits in names: all numbers are then columns' own
MODELS = (
    "openrouter/anthropic/claude-opus-thinking-preview-of-the-year",
    "openrouter/openai/codex-high-effort-preview-of-the-year",
    "together/meta-llama/Llama-Maverick-Experts-Instruct-Quantised",
)
JUDGES = (
    "google/gemini-pro-preview-judge-of-helpfulness",
    "openai/mini-judge-of-faithfulness-to-the-source",
)
_NUMBER = re.compile(r"[-+±]?\d[\d,.]*%?")


def _write(path: Path, header: str, rows: list[list[object]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header.split(","), *rows])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found, chance = tmp_path_factory.mktemp("long"), random.Random(5)
    items = ["section-" + "".join(letters) for letters in product("abcde", "fghij")]
    scores: list[list[object]] = [
        [model, item, judge, repeat, round(9000 * chance.random() + 1000, 2)]
        for model, item, judge, repeat in product(MODELS, items, JUDGES, (0, 1))
    ]
    _write(found / "scores.csv", "model,item,rater,repeat,score", scores)
    pairs = [chance.sample(MODELS, 2) for _ in range(80)]
    rows: list[list[object]] = [
        [items[k % 25], *pair, chance.choice([*pair, "tie"]), JUDGES[k % 2]] for k, pair in enumerate(pairs)
    ]
    _write(found / "preferences.csv", "item,first,second,winner,judge", rows)
    return found


@pytest.mark.parametrize(
    "command",
    [
        ("report", "scores.csv"),
        ("compare", "scores.csv", "--margin", "100"),
        ("compare", "scores.csv", "--against", MODELS[0]),
        ("pairwise", "preferences.csv"),
        ("plan", "scores.csv", "--half-width", "500", "--model", MODELS[0]),
    ],
)
def test_no_column_falls_off(command: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    narrow, wide = (
        CliRunner(env={"COLUMNS": width, "TERMINAL_WIDTH": width}).invoke(cli, command)
        for width in ("80", "300")
    )
    assert narrow.exit_code == wide.exit_code == 0, narrow.output
    assert max(map(cell_len, narrow.stdout.splitlines())) <= 80
    lost = Counter(_NUMBER.findall(wide.stdout)) - Counter(_NUMBER.findall(narrow.stdout))
    assert not lost, f"{lost}\n{narrow.stdout}"
    assert "…" not in narrow.stdout
