from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evalbudget.backtest import RecordedScores
from evalbudget.races import RaceConfig, history_factors

ITEMS = tuple(f"q{j}" for j in range(30))


def test_recorded_scores_and_a_folder_of_logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALBUDGET_CACHE", str(tmp_path / "cache"))
    scores = (np.random.default_rng(0).random((3, 30, 1, 1)) < 0.5).astype(np.float32)
    RecordedScores(scores, ("a", "b", "c"), ITEMS, ("match",)).save(tmp_path / "scores.npz")

    def open_logs(path: Path) -> str:
        return f"no logs in {path.name}"

    config = RaceConfig(sampler="race", budget="50%", history=str(tmp_path / "scores.npz"))
    factors, said = history_factors(config, ITEMS, ["match"], open_folder=open_logs)
    assert factors is not None
    assert said.startswith("history has 30 of the 30 items, of 3 models")
    (tmp_path / "logs").mkdir()
    config = RaceConfig(sampler="race", budget="50%", history=str(tmp_path / "logs"))
    assert history_factors(config, ITEMS, ["match"], open_folder=open_logs) == (
        None,
        "history ignored: no logs in logs",
    )


def test_a_folder_of_logs_without_any_score_is_no_history(tmp_path: Path) -> None:
    nothing = RecordedScores(np.full((1, 30, 1, 1), np.nan), ("a",), ITEMS, ("match",), may_be_empty=True)
    config = RaceConfig(sampler="race", budget="50%", history=str(tmp_path))
    factors, said = history_factors(config, ITEMS, ["match"], open_folder=lambda path: nothing)
    assert factors is None
    assert said == f"history ignored: {tmp_path} holds no score: every answer is missing"
