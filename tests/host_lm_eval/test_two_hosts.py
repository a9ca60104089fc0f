"""The same recorded scores on both hosts: the same decisions, and the same estimates to 1e-12."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import inspect_ai
import numpy as np
import pytest
from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import get_model
from inspect_ai.solver import TaskState
from tests.claims import variant
from tests.host_inspect.conftest import (  # noqa: F401  (fixtures)
    HOST_WARNING,
    _nothing_is_done_for_nobody,
    _nothing_is_drawn,
    _streams_of_the_host,
)
from tests.host_inspect.worlds import entry_of, scoring, solving, told_by
from tests.host_lm_eval.worlds import CoinModel, bought_in, simple_evaluate, write_scored

from evalbudget_inspect import budgeted as budgeted_inspect
from evalbudget_lm_eval import budgeted as budgeted_lm_eval

pytestmark = pytest.mark.filterwarnings(HOST_WARNING)

ITEMS = 8
BUDGET = 80
ROWS = {
    "estimate": "",
    "stderr": "_stderr",
    "lower": "_lower",
    "upper": "_upper",
    "repeats_stderr": "_repeats_stderr",
    "repeats_lower": "_repeats_lower",
    "repeats_upper": "_repeats_upper",
}
Cell = tuple[int, int]


@pytest.fixture
def recorded() -> np.ndarray[Any, np.dtype[np.float64]]:
    """A score for every item and epoch; items differ in mean and in noise."""
    rng = np.random.default_rng(20261121)
    sizes = rng.uniform(0.5, 30.0, size=(ITEMS, 1))
    means = rng.uniform(0.2, 0.9, size=(ITEMS, 1))
    return np.asarray(rng.beta(sizes * means, sizes * (1 - means), size=(ITEMS, BUDGET)))


def _on_inspect(
    recorded: Any, folder: Path, **options: Any
) -> tuple[list[Cell], dict[str, float], dict[str, Any]]:
    order: list[Cell] = []

    def played(state: TaskState) -> float:
        order.append((int(str(state.sample_id)), state.epoch - 1))
        return float(recorded[order[-1]])

    samples = [Sample(id=str(i), input=f"item {i}", target="") for i in range(ITEMS)]
    silent, score = solving(lambda state: None), scoring("played", played)()
    task = Task(dataset=MemoryDataset(samples), solver=silent, scorer=score, name="played")
    (log,) = inspect_ai.eval(
        budgeted_inspect(task, budget=BUDGET, score_range="0..1", **options),
        model=get_model("mockllm/model", memoize=False),
        max_samples=1,
        display="none",
        log_dir=str(folder),
        log_realtime=False,
        ctl_server=False,
    )
    assert log.status == "success", log.error
    return order, told_by(log), entry_of(log)


class PlayedModel(CoinModel):
    """Says the recorded score of the document and of the repeat, which come in order."""

    def __init__(self, recorded: Any) -> None:
        super().__init__()
        self._recorded = recorded
        self._times = Counter[int]()

    def _answer(self, prompt: str, kwargs: dict[str, Any]) -> str:
        number = int(prompt.split()[1])
        self._times[number] += 1
        return repr(float(self._recorded[number, self._times[number] - 1]))


def _on_lm_eval(
    recorded: Any, folder: Path, **options: Any
) -> tuple[list[Cell], dict[str, float], dict[str, Any]]:
    tasks = write_scored(folder, "score", "float(results[0])", n=ITEMS)
    journal = folder / "journal.db"
    given = {"budget": BUDGET, "score_range": "0..1", "journal": journal, **options}
    with budgeted_lm_eval(**given):
        results = simple_evaluate(tasks, PlayedModel(recorded), rounds=1)
    order = [(request.cell.item, request.cell.epoch) for request in bought_in(journal).requests]
    rows = {name: results["results"]["numbers"][f"score{end},none"] for name, end in ROWS.items()}
    return order, rows, results["evalbudget"]


def _chosen(order: Sequence[Cell], first: int) -> list[Cell]:
    """What was asked because of scores."""
    return list(order[ITEMS * first :])


@pytest.mark.parametrize(
    ("objective", "first", "sampler"),
    [
        ("worst-item", 3, {}),
        variant("mean", 3, {"sampler": "eb-bernstein"}),
        variant("worst-item", 3, {"sampler": "eb-bernstein"}),
        variant("mean", 3, {}),
    ],
)
def test_both_hosts_decide_and_estimate_alike(
    recorded: Any, tmp_path: Path, objective: str, first: int, sampler: dict[str, str]
) -> None:
    options = {**sampler, "objective": objective, "seed": 5}
    order_i, rows_i, block_i = _on_inspect(recorded, tmp_path / "logs", **options)
    order_l, rows_l, block_l = _on_lm_eval(recorded, tmp_path / "tasks", **options)

    assert len(order_i) == len(order_l) == BUDGET
    assert sorted(order_i) == sorted(order_l)
    assert _chosen(order_i, first) == _chosen(order_l, first)
    counts = Counter(item for item, _ in order_l)
    assert max(counts.values()) > 1.3 * min(counts.values())  # there was something to decide

    for name in ROWS:
        assert rows_l[name] == pytest.approx(rows_i[name], abs=1e-12, rel=0), name
    items_i, items_l = block_i["per_item"], block_l["tasks"]["numbers"]
    assert [int(i) for i in items_i["id"]] == items_l["doc_id"]
    for column in ("readings", "estimate", "lower", "upper", "anytime_lower", "anytime_upper"):
        assert items_l[column] == items_i[column], column
