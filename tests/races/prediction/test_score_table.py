from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.claims import variant

from evalbudget.backtest import RecordedScores, history_of
from evalbudget.errors import InvalidInputError
from evalbudget.races.prediction import FactorModel, _logistic, _score_table, _selection
from evalbudget.races.prediction._score_table import ScoreTable, table_of

SMALL = 900
"""Scores in a block: a few rows or columns of the histories here."""


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def begin(size: int = SMALL) -> None:
        monkeypatch.setattr(_score_table, "BLOCK", size)
        monkeypatch.setattr(_logistic, "_CELLS", size // 2)

    return begin


def assert_same(a: FactorModel, b: FactorModel) -> None:
    for name in ("V", "U", "prior_mean", "prior_precision"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), atol=1e-9)
    for one, two in zip(a.folds, b.folds, strict=True):
        assert_same(one.model, two.model)
        np.testing.assert_array_equal(one.scores, two.scores)


@pytest.mark.parametrize("shape", [(31, 140), variant((140, 31))])
def test_blocks_change_nothing(shape: tuple[int, int], small_blocks: Callable[[], None]) -> None:
    rng = np.random.default_rng(0)
    scores = (rng.random(shape) < rng.uniform(0.1, 0.9, shape[1])).astype(float)
    scores[rng.random(shape) < 0.1] = np.nan
    scores[7] = np.nan
    whole = FactorModel.train(scores, rank=2, ridge=1.0)
    small_blocks()
    assert_same(whole, FactorModel.train(scores.astype(np.float32), rank=2, ridge=1.0))


@pytest.mark.parametrize(
    "name", [variant("cruxeval_models"), variant("alpacaeval_models"), "hanna_multijudge"]
)
def test_a_history_in_blocks_is_the_same(
    name: str,
    recorded_data: Callable[[str], RecordedScores],
    small_blocks: Callable[..., None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_selection, "RANKS", (2,))
    monkeypatch.setattr(_selection, "RIDGES", (1.0,))
    recorded = recorded_data(name)
    scale = (0.0, 1.0) if np.nanmax(recorded.scores) <= 1.0 else (0.0, 5.0)
    monkeypatch.setenv("EVALBUDGET_CACHE", str(tmp_path / "whole"))
    whole = history_of(recorded, without=recorded.models[:2], score_range=scale)
    monkeypatch.setenv("EVALBUDGET_CACHE", str(tmp_path / "blocks"))
    small_blocks(recorded.scores.size // 9)
    assert_same(whole, history_of(recorded, without=recorded.models[:2], score_range=scale))
    # the same history has the same place in the cache
    assert len({file.name for file in tmp_path.glob("*/factors-*.npz")}) == 1


def test_parts_are_rows_and_no_copies(small_blocks: Callable[[], None]) -> None:
    source = np.random.default_rng(0).random((30, 200)).astype(np.float32)
    part = table_of(source).take(np.arange(1, 30, 2)).take(np.array([4, 2]))
    assert part.source is source
    assert part.models.tolist() == [9, 5]
    np.testing.assert_array_equal(part.read(np.array([1]), np.array([3, 8])), source[[5]][:, [3, 8]])
    small_blocks()
    table = ScoreTable(source, np.arange(29, -1, -1))
    for blocks, all_of_it in ((table.by_models(), source[::-1]), (table.by_items(), source[::-1].T)):
        for first, block in blocks:
            assert 0 < block.size <= SMALL
            np.testing.assert_array_equal(block, all_of_it[first : first + len(block)])


def test_calibration_keeps_some_300_models() -> None:
    scores = (np.random.default_rng(0).random((700, 12)) < 0.5).astype(float)
    model = FactorModel.train(scores, rank=0, ridge=1.0)
    assert sum(fold.scores.shape[0] for fold in model.folds) == 234  # every third


def test_bad_scores_in_a_later_block(small_blocks: Callable[[], None]) -> None:
    scores = np.zeros((30, 200), dtype=np.float32)
    scores[29, 150] = 3.0
    small_blocks()
    with pytest.raises(InvalidInputError, match="score of 3"):
        FactorModel.train(scores)
