"""What the default sampler costs the printed estimate, against equal repeats for the same calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tests.host_lm_eval.worlds import CoinModel, simple_evaluate, write_scored

from evalbudget_lm_eval import budgeted

ITEMS, BUDGET = 40, 800


class RatingModel(CoinModel):
    """A judge that rates most documents alike every time, and one in five differently."""

    def __init__(self) -> None:
        super().__init__()
        self._rng = np.random.default_rng(20261122)

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        number = int(prompt.rsplit("say ", 1)[1].split()[0])
        mean, spread = 3.5 + 5.0 * (number * 7 % ITEMS) / ITEMS, 2.5 if number % 5 == 3 else 0.4
        return str(int(np.clip(round(self._rng.normal(mean, spread)), 0, 10)))


def test_the_default_prints_hardly_larger_errors_than_equal_repeats(tmp_path: Path) -> None:
    folder = write_scored(tmp_path / "tasks", "score", "float(results[0])", n=ITEMS)
    rows: dict[str | None, dict[str, Any]] = {}
    for sampler in (None, "uniform"):
        with budgeted(sampler=sampler, budget=BUDGET, journal="none"):
            results = simple_evaluate(folder, RatingModel(), rounds=8)
        rows[sampler] = results["results"]["numbers"]
        assert results["evalbudget"]["spent"] == BUDGET
    ours, equal = rows[None], rows["uniform"]
    assert ours["score_stderr,none"] <= 1.05 * equal["score_stderr,none"]
    assert ours["score_repeats_stderr,none"] <= 1.05 * equal["score_repeats_stderr,none"]
