"""A kill in the middle of documents that take several calls: the budget holds, and what was said stays."""

from __future__ import annotations

import copy
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.host_lm_eval.worlds import CoinModel, simple_evaluate, write_task

from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.run import rounds

REPEATS = 4


class Killed(CoinModel):
    """Answers so many requests of each document, and is gone.

    Args:
        answers: how many, by the number of the document; empty for all of all.
        run: the folder of the run.
        left: a copy of it, as it was when the model was gone.
    """

    def __init__(self, answers: tuple[int, ...] = (), run: Path = Path(), left: Path = Path()) -> None:
        super().__init__()
        self._answers, self._run, self._left = answers, run, left

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        if not self._answers:
            return super().generate_until(requests)
        heard: Counter[str] = Counter()
        for request in requests:
            prompt, options = request.args
            heard[prompt] += 1
            if heard[prompt] <= self._answers[int(prompt.split()[1])]:
                self._answer(prompt, copy.deepcopy(options))
        shutil.copytree(self._run, self._left)
        raise KeyboardInterrupt


@pytest.mark.parametrize("at_once", [1, 4, 6, 9])
@pytest.mark.parametrize(
    "answers",
    [
        (0, 2),
        (0, 1, 3),
        (0, 0, 2),
        (2, 2),
        (1, 3),
        (3, 3, 3, 3),
        (4, 0),
        (0, 0),
        (4, 3, 0, 0),
        (4, 4, 1, 0, 0),
        (3, 0, 0, 0),
    ],
)
def test_the_budget_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: tuple[int, ...], at_once: int
) -> None:
    monkeypatch.setattr(rounds, "at_a_kill", lambda lm: at_once)
    folder = write_task(tmp_path / "tasks", n=len(answers), repeats=REPEATS)
    run, left = tmp_path / "run", tmp_path / "left"
    run.mkdir()
    budget = REPEATS * len(answers)
    model = Killed(answers, run, left)
    with (
        pytest.raises(KeyboardInterrupt),
        budgeted(budget=budget, journal=run / "j.jsonl", sampler="uniform"),
    ):
        simple_evaluate(folder, model)
    billed = len(model.calls) + min(at_once, budget - len(model.calls))
    for more in (0, 2 * REPEATS):
        again = Killed()
        with budgeted(budget=budget + more, journal=left / "j.jsonl", sampler="uniform"):
            block = simple_evaluate(folder, again)["evalbudget"]
        billed += len(again.calls)
        assert billed <= budget + more
        assert block["spent"] <= budget + more
        assert billed <= block["spent"] + 1e-9
        assert billed > budget + more - 2 * REPEATS  # no more is lost than was under way
