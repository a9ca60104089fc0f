"""Tables in blocks are plain arrays, and races on them are the same."""

from __future__ import annotations

import numpy as np
import pytest

from evalbudget.design import Design
from evalbudget.hooks._plugins import plugins
from evalbudget.races.samplers import RacingSampler, _cell_table
from evalbudget.races.samplers._cell_table import CellTable
from evalbudget.sampler import Kind


@pytest.mark.parametrize("placed", [True, False])
def test_a_table_is_an_array(placed: bool) -> None:
    rng = np.random.default_rng(0)
    m, n = 7, 300
    place = np.argsort(rng.permutation(n)) if placed else None
    table, array = CellTable(m, n, np.float64, place), np.zeros((m, n))
    for _ in range(40):
        model, item, value = rng.integers(m, size=20), rng.integers(n, size=20), rng.random()
        table[model, item] = value
        array[model, item] = value
        one, start = int(model[0]), int(item[0])
        table[one, start : start + 5] = array[one, start : start + 5] = rng.random()
        assert table[one, start] == array[one, start]
        np.testing.assert_array_equal(table[one, item], array[one, item])
        np.testing.assert_array_equal(table[model, item], array[model, item])
        grid = np.ix_(model, item)
        np.testing.assert_array_equal(table[grid], array[grid])
    np.testing.assert_array_equal(table[np.arange(m)[:, None], np.arange(n)], array)


def test_memory_is_taken_where_something_is_written() -> None:
    table = CellTable(1_000, 100_000, np.float64)
    table[np.arange(1_000), 5] = 1.0
    table[3, np.arange(100_000)] = 2.0
    assert table._cells.nbytes < 3_000_000
    assert table[np.array([2, 3]), 5].tolist() == [1.0, 2.0]


def raced(name: str) -> tuple[list[tuple[int, int]], int, list[np.ndarray]]:
    """Cells in their order, the leader and all scores, of a race with failures, on 9 models and 150 items."""
    rng = np.random.default_rng(2)
    scores = (rng.random((9, 150)) < np.linspace(0.3, 0.8, 9)[:, None]).astype(float)
    scores[rng.random(scores.shape) < 0.03] = np.nan
    cls = plugins().sampler(name, Kind.MODELS)
    given = {"budget": 700} if name in {"sequential-halving", "successive-rejects"} else {}
    sampler = cls(Design(items=map(str, range(150)), models=map(str, range(9))), seed=4, **given)
    assert isinstance(sampler, RacingSampler)
    asked: list[tuple[int, int]] = []
    while sampler.asked < 700 and (cells := sampler.next_cells(700 - sampler.asked)) is not None:
        asked += zip(cells.model.tolist(), cells.item.tolist(), strict=True)
        sampler.learn(cells, scores[cells.model, cells.item])
    found = [array for m in range(9) for array in (sampler.scores_of(m), sampler.draws(m).value)]
    return asked, sampler.leader(), found


@pytest.mark.parametrize(
    "name", ["uniform", "race", "lucb", "paired-eprocess", "ucb-e", "pulse", "sequential-halving"]
)
def test_a_race_in_blocks_is_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dense = raced(name)
    monkeypatch.setattr(_cell_table, "DENSE", -1)
    blocks = raced(name)
    assert blocks[:2] == dense[:2]
    for one, other in zip(blocks[2], dense[2], strict=True):
        np.testing.assert_array_equal(one, other)
