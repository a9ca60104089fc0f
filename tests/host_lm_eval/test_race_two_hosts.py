"""The same scores raced on both hosts: the same decisions, and the same estimates to 1e-12."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from inspect_ai.model import get_model
from tests.claims import variant
from tests.host_inspect.conftest import (  # noqa: F401  (fixtures)
    HOST_WARNING,
    _nothing_is_done_for_nobody,
    _nothing_is_drawn,
    _streams_of_the_host,
)
from tests.host_inspect.race_tasks import board, quiz, run
from tests.host_inspect.worlds import scoring
from tests.host_lm_eval.race_worlds import manager
from tests.host_lm_eval.worlds import TextModel, averaged

from evalbudget_inspect import race as race_on_inspect
from evalbudget_lm_eval.races.api import race as race_on_lm_eval

pytestmark = pytest.mark.filterwarnings(HOST_WARNING)

N = 60
NAMES = ("a", "b", "c")


def table() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Scores in [0, 1] of three models, close to each other, shape (3, N)."""
    rng = np.random.default_rng(11)
    return np.clip(np.array([[0.5], [0.62], [0.58]]) + 0.3 * rng.normal(size=(3, N)), 0.0, 1.0)


class Says(TextModel):
    """Answers a document with its score."""

    def __init__(self, scores: Any) -> None:
        super().__init__()
        self.scores = scores

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        return repr(float(self.scores[int(prompt.split()[1])]))


def on_lm_eval(folder: Path, **options: Any) -> Any:
    tasks = manager(folder, n=N)
    config = yaml.safe_load((folder / "numbers.yaml").read_text()) | {
        "process_results": lambda doc, results: {"points": float(results[0])},
        "metric_list": averaged("points"),
    }
    arms = {f"simulated/{name}": Says(row) for name, row in zip(NAMES, table(), strict=True)}
    result = race_on_lm_eval(arms, config, task_manager=tasks, **options)
    asked = {name: {s["doc_id"] for s in r["samples"]["numbers"]} for name, r in result.results.items()}
    return result.leaderboard, asked


def on_inspect(folder: Path, **options: Any) -> Any:
    scores = {f"simulated/{name}": row for name, row in zip(NAMES, table(), strict=True)}

    def known(state: Any) -> float:
        return float(scores[str(state.model)][int(state.sample_id.split("-")[1])])

    models = [get_model(f"simulated/{name}", memoize=False, mean=0.5) for name in NAMES]
    logs = run(race_on_inspect(quiz(N, scorer=scoring("known", known)()), **options), models, folder)
    asked = {log.eval.model: {int(str(s.id).split("-")[1]) for s in log.samples or []} for log in logs}
    return board(logs), asked


@pytest.mark.parametrize("sampler", ["race", variant("lucb")])
def test_both_hosts_decide_alike(sampler: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"budget": 72, "batch": 8, "seed": 3, "sampler": sampler}
    ours, asked = on_lm_eval(tmp_path / "tasks", **options)
    theirs, asked_there = on_inspect(tmp_path / "logs", **options)
    assert asked == asked_there
    assert ours.spent == theirs.spent
    assert ours.outcome == theirs.outcome
    assert [s.name for s in ours.standings] == [s.name for s in theirs.standings]
    for own, other in zip(ours.standings, theirs.standings, strict=True):
        assert (own.status, own.readings, own.rank) == (other.status, other.readings, other.rank)
        for value in ("estimate", "stderr", "lower", "upper"):
            assert getattr(own, value) == pytest.approx(getattr(other, value), abs=1e-12)
