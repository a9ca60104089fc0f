"""Sections robin-hood and pulse of benchmarks/papers.py run at a tiny size, and rest on what they say."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.quick import check_table, save, written
from tests.claims import variant

from evalbudget import Design
from evalbudget.races.prediction import FactorModel
from evalbudget.replay._contestant import contestants

SECTIONS = ("robin-hood", "pulse")


@pytest.fixture(scope="module", autouse=True)
def _recorded(data: Path) -> None:
    """Stand-ins for the recorded scores, in their layout."""
    rng = np.random.default_rng(0)
    factors = {"U": rng.normal(size=(120, 4)), "V": rng.normal(size=(400, 4))}
    np.savez(data / "leaderboard_factors.npz", allow_pickle=False, **factors)
    quality = rng.normal(3.0, 1.0, size=(3, 30, 1))
    judges = np.clip(np.rint(quality + rng.normal(size=(3, 30, 20))), 1, 5).astype(np.float32)
    judges[0, 0, 1:] = np.nan  # too few to draw from
    human = np.clip(quality + rng.normal(size=(3, 30, 3)), 1, 5).astype(np.float32)
    save(data, "hanna_multijudge", judges[:, :, :, None], reference=human)


@pytest.mark.parametrize("section", [variant("robin-hood"), variant("pulse")])
def test_a_section_runs_and_is_rendered(section: str, tmp_path: Path) -> None:
    kept, page, _ = written("papers", section, docs=tmp_path)
    found = kept[section]
    assert [table["title"] for table in found["tables"]][-2:] == ["Claims", "Errata"]
    for table in (found, *found["tables"]):
        check_table(table, page)


def test_all_sections_are_tested() -> None:
    assert set(SECTIONS) <= set(importlib.import_module("papers").PAGE.sections)


def test_pools_have_the_shape_of_the_papers_data() -> None:
    pools: Any = importlib.import_module("papers_sections.ratings_pool")
    for world in (pools.GPT_HELPFULNESS, pools.MEAN_OF_ROWS):
        pool = pools.ratings_pool(world, 200, seed=3)
        assert pool.values.shape == (200, 30)
        assert set(np.unique(pool.values)) <= {0.0, 1.0, 2.0, 3.0, 4.0}
        np.testing.assert_allclose(pool.means, pool.values.mean(axis=1))
        np.testing.assert_allclose(pool.variances, pool.values.var(axis=1))
        unanimous, dissenting = round(world.unanimous * 200), round(world.dissenting * 200)
        assert (pool.variances[:unanimous] == 0).all()
        near = pool.values[unanimous : unanimous + dissenting]
        dissenters = (near != near[:, -1:]).sum(axis=1)
        assert set(dissenters) <= {1, 2, 3}
        assert not np.array_equal(pool.values, pools.ratings_pool(world, 200, seed=4).values)


def test_published_rows_and_their_mean() -> None:
    published: Any = importlib.import_module("papers_sections.robin_hood_published")
    assert len(published.ROWS) == 8
    assert np.round(published.mean_of_rows(), 3).tolist() == [0.433, 0.321, 0.314, 0.308, 0.253, 0.212]
    assert sum(row.halved for row in published.ROWS) == 4
    assert [value for value, _ in published.row_of("GPT helpfulness")][:2] == [0.413, 0.265]


def test_auto_decides_like_rating_kernel_on_such_a_pool() -> None:
    replays: Any = importlib.import_module("papers_sections.worst_items")
    pool = importlib.import_module("papers_sections.ratings_pool").ratings_pool(n_items=60, seed=1)
    both = [
        replays.worst_errors(pool, *contestants([name], {}), (300, 1200), 2)
        for name in ("auto", "rating-kernel")
    ]
    np.testing.assert_array_equal(*both)


def test_a_replay_by_hand() -> None:
    replays: Any = importlib.import_module("papers_sections.worst_items")
    pools: Any = importlib.import_module("papers_sections.ratings_pool")
    pool = pools.pool_of_stored("p", np.array([[1.0, 1.0], [0.0, 4.0]]))
    (uniform,) = contestants(["uniform"], {})
    first, last = replays.item_means(pool, uniform, (1, 40), 0)
    assert np.isnan(first).sum() == 1
    assert last[0] == 1.0
    assert last[1] * 20 / 4 == pytest.approx(round(last[1] * 20 / 4))
    np.testing.assert_allclose(replays.worst_errors(pool, uniform, (40,), 1)[0], abs(last[1] - 2.0))


def test_the_papers_subset() -> None:
    section: Any = importlib.import_module("papers_sections.pulse")
    scores = np.array([[0.5], [0.9], [0.88], [0.86], [0.7], [0.6]])
    assert section.in_descending_order(scores, 0.03, 4).ravel().tolist() == [0.9, 0.88, 0.86, 0.7]
    assert section.in_descending_order(scores, 0.04, 3).ravel().tolist() == [0.9, 0.86, 0.7]
    assert section.in_descending_order(scores, 0.2, 10).ravel().tolist() == [0.9, 0.7, 0.6, 0.5]


def test_budgets_to_a_share_of_the_races() -> None:
    section: Any = importlib.import_module("papers_sections.pulse")
    right = np.array([[0, 1, 1, 1], [1, 0, 1, 1]], dtype=bool)
    runs = section.Runs(np.array([10, 20, 30, 40]), right, 0.0, 5)
    assert [runs.until(share) for share in (0.5, 0.95)] == [10.0, 30.0]
    assert runs.at(25) == 0.5
    assert np.isnan(runs.at(5))
    assert np.isnan(runs.at(50))
    assert section.Runs(np.array([10, 20]), ~right[:, :2], 0.0, 5).until(0.95) == float("inf")


def test_lambda_of_the_authors_code_by_hand() -> None:
    authors: Any = importlib.import_module("papers_sections.authors_pulse")
    # F = 2, Phi = 1, pi = 1/2: the denominator is 1 + 4
    assert authors.code_coefficient(2.0, 1.0, 0.5, 1.0) == pytest.approx(0.6)
    assert authors.code_coefficient(2.0, 1.0, 0.5, 9.0) == 0.0
    assert authors.code_coefficient(2.0, 1.0, 0.5, -1.0) == 1.0


@pytest.mark.parametrize("name", ["AuthorsPulse", "LoopPulse"])
def test_the_first_batch_is_not_in_zbar(name: str) -> None:
    authors: Any = importlib.import_module("papers_sections.authors_pulse")
    design = Design(items=tuple(map(str, range(40))), models=("a", "b"))
    history = FactorModel.of_factors(np.zeros((40, 1)), design.items)
    sampler = getattr(authors, name)(design, coefficient="published", predictor=history, batch=4, seed=0)
    for step in range(3):
        cells = sampler.next_cells()
        sampler.learn(cells, np.ones(len(cells)))
        sampler.leader()  # takes the step in
        if step == 0:
            note = sampler._now()[1]
            waiting = int(note.fitted.argmin())  # not asked next, so not refitted
            assert sampler._weight_of_predictions(note, waiting, 4, 36) < 1.0
    # two steps of the loop: lambda 1 in the first of them, less in the next
    note = sampler._now()[1]
    assert note.corrections.sum() > 0
    assert (note.batches_of - note.forgotten).max() <= 2
