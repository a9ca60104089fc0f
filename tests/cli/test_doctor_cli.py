"""``evalbudget doctor`` as people type it."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from click.testing import CliRunner, Result

from evalbudget.backtest import RecordedScores
from evalbudget.cli.main import cli


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["doctor", *arguments])


def write(path: Path, chances: tuple[float, ...] = (0.5, 0.52), name: str = "m") -> Path:
    rng = np.random.default_rng(0)
    scores = np.array([rng.random((100, 1, 1)) < chance for chance in chances], dtype=float)
    models = tuple(f"{name}{i}" for i in range(len(chances)))
    RecordedScores(scores, models, tuple(map(str, range(100))), ("r",)).save(path)
    return path


def test_findings_with_remedies_in_eighty_columns(tmp_path: Path) -> None:
    done = run(str(write(tmp_path / "s.npz")))
    assert done.exit_code == 0, done.output
    assert "2 models, 100 items, 1 rater, 200 scores." in " ".join(done.output.split())
    assert "PROBLEM  too few items for the lead" in done.output
    assert "-> Call it a tie" in done.output
    assert max(map(len, done.output.splitlines())) <= 80


def test_json_and_strict(tmp_path: Path) -> None:
    path = write(tmp_path / "s.npz")
    done = run(str(path), "--strict", "--json", str(tmp_path / "found.json"))
    assert done.exit_code == 1
    told = json.loads((tmp_path / "found.json").read_text())
    assert told["sentence"].startswith("1 problem")
    assert told["findings"][0]["check"] == "gap"
    assert run(str(write(tmp_path / "t.npz", (0.1, 0.9))), "--strict").exit_code == 0
    assert json.loads(run(str(path), "--json", "-").output)["models"] == 2


def test_several_paths_stand_side_by_side(tmp_path: Path) -> None:
    a, b = write(tmp_path / "a.npz", (0.1,), "a"), write(tmp_path / "b.npz", (0.9,), "b")
    done = run(str(a), str(b))
    assert done.exit_code == 0, done.output
    assert "who is best is proved" in done.output


def test_bad_input(tmp_path: Path) -> None:
    broken = tmp_path / "x.npz"
    broken.write_bytes(b"PK nothing")
    for arguments, told in (
        ([str(tmp_path / "none.npz")], "none.npz"),
        ([str(broken)], "x.npz"),
        ([str(write(tmp_path / "s.npz")), "--rater", "R"], "Did you mean 'r'"),
        ([str(tmp_path / "s.npz"), "--level", "2"], "level"),
    ):
        done = run(*arguments)
        assert done.exit_code == 2, done.output
        assert told in done.output
