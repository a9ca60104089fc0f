"""Every section of benchmarks/repeats.py runs at a tiny size, and the page shows what was printed."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from evalbudget.repeats.backtest._replay import ReplayStage
from evalbudget.replay._contestant import contestants
from evalbudget.replay._workers import Job

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module", autouse=True)
def importable() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(importlib.import_module("repeats").main, arguments, catch_exceptions=False)


def recorded(folder: Path) -> None:
    """A stand-in for the real ratings: the layout of judge_repeats.npz, 30 items."""
    rng = np.random.default_rng(0)
    spread = rng.gamma(2.0, 0.5, size=(1, 30, 2, 1))
    scores = np.clip(np.rint(rng.normal(6.0, spread, size=(1, 30, 2, 8))), 1, 10).astype(np.float32)
    names = {"models": ["m"], "items": [str(i) for i in range(30)], "raters": ["a", "b"]}
    np.savez(folder / "judge_repeats.npz", allow_pickle=False, scores=scores, **names)


@pytest.mark.parametrize("section", ["bias", "sequences", "coverage", "speed"])
def test_a_section_runs(section: str, tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    result = invoke(section, "--quick", "--json", str(out))
    assert result.exit_code == 0
    found = json.loads(out.read_text(encoding="utf-8"))[section]["section"]
    assert found["tables"]
    for table in found["tables"]:
        assert table["rows"]
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
    for target in found["targets"]:
        assert target["text"].split(":")[0] in " ".join(result.stdout.split())


def test_the_page_shows_the_printed_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(tmp_path)
    monkeypatch.setenv("EVALBUDGET_DATA", str(tmp_path))
    docs = tmp_path / "docs"
    result = invoke("judges", "--quick", "--seeds", "3", "--write-docs", "--docs", str(docs))
    page = (docs / "repeats.md").read_text(encoding="utf-8")
    entry = json.loads((docs / "results" / "repeats.json").read_text(encoding="utf-8"))["judges"]
    assert entry["command"] == "python benchmarks/repeats.py judges --seeds 3 --quick --write-docs"
    assert entry["command"] in page
    for table in entry["section"]["tables"]:
        for row in table["rows"]:
            assert "| " + " | ".join(row) + " |" in page
            for cell in row:
                assert cell in result.stdout
    assert str(tmp_path) not in page


def test_writing_one_section_keeps_the_others(tmp_path: Path) -> None:
    for section in ("sequences", "bias"):
        invoke(section, "--quick", "--seeds", "2", "--write-docs", "--docs", str(tmp_path))
    written = json.loads((tmp_path / "results" / "repeats.json").read_text(encoding="utf-8"))
    assert list(written) == ["bias", "sequences"]


def test_kept_replays_change_no_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(tmp_path)
    monkeypatch.setenv("EVALBUDGET_DATA", str(tmp_path))
    outputs = [invoke("judges", "--quick", "--seeds", "2", "--replays", str(tmp_path)).stdout for _ in "ab"]
    assert outputs[0] == outputs[1]
    assert list(tmp_path.glob("judges-eb-bernstein-*.npy"))


def test_absent_data_are_said_and_leave_the_page_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALBUDGET_DATA", str(tmp_path))
    result = invoke("judges", "--write-docs", "--docs", str(tmp_path / "docs"))
    assert "not measured: judge_repeats.npz was not found; set EVALBUDGET_DATA" in result.stdout
    assert not (tmp_path / "docs").exists()


def test_distributions_are_exact() -> None:
    distributions: Any = importlib.import_module("repeats_sections.distributions")
    probabilities = np.array([[0.25, 0.75, 0.0], [0.0, 0.0, 1.0], [0.1, 0.2, 0.7]])
    pool = distributions.pool_of("p", probabilities, np.array([0.0, 1.0, 4.0]))
    assert pool.means == pytest.approx([0.75, 4.0, 3.0])
    assert pool.variances == pytest.approx([0.1875, 0.0, 2.4])


@pytest.mark.parametrize("name", ["uniform", "robin"])
def test_fixed_allocations_against_a_replay(name: str) -> None:
    replays: Any = importlib.import_module("repeats_sections.replays")
    distributions: Any = importlib.import_module("repeats_sections.distributions")
    pool, (entrant,) = distributions.mostly_top(30), contestants([name], {})
    short_cut = replays.fixed_errors(pool, entrant, (60, 300), 1)
    outcomes = ReplayStage((pool,), (entrant,), "worst-item", 1).run(Job(0, 0, 0, budgets=(60, 300)))
    assert short_cut[0] == pytest.approx([outcome.worst_item_error for outcome in outcomes])
