"""A run in hundreds of rounds draws no bar for each, and the host's bars are left as they were."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from tests.host_lm_eval.worlds import CoinModel, simple_evaluate, write_task
from tqdm import tqdm

from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.bars import WORTH_A_BAR, bars_of_a_round

STOCK = vars(tqdm)["__init__"]


@pytest.mark.parametrize(("documents", "hidden"), [(1, True), (WORTH_A_BAR - 1, True), (WORTH_A_BAR, False)])
def test_bars_of_small_rounds_are_hidden(documents: int, hidden: bool) -> None:
    with bars_of_a_round(documents), tqdm(total=3, disable=False) as bar:
        assert bar.disable is hidden
    assert vars(tqdm)["__init__"] is STOCK


def test_the_host_has_its_bars_back_after_an_error() -> None:
    with pytest.raises(KeyboardInterrupt), bars_of_a_round(1):
        raise KeyboardInterrupt
    assert vars(tqdm)["__init__"] is STOCK


def test_a_run_says_how_far_it_is(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = write_task(tmp_path / "tasks", n=20)
    monkeypatch.setattr(logging.getLogger("lm_eval"), "propagate", True)
    with caplog.at_level(logging.INFO, "lm_eval.evalbudget"), budgeted(budget=400):
        simple_evaluate(folder, CoinModel())
    said = [r.getMessage() for r in caplog.records if r.name == "lm_eval.evalbudget"]
    assert 2 <= len(said) <= 20
    assert said[-1] == "400 of 400 scores are spent"
