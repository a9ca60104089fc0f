"""Races on recorded scores: rows against replays done by hand, budgets, missing cells, history, bad input."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evalbudget import Budget, Design
from evalbudget.backtest import RecordedScores, backtest_race, history_of
from evalbudget.errors import BudgetError, InvalidInputError, UnknownNameError
from evalbudget.hooks._plugins import plugins
from evalbudget.races.estimates import model_means
from evalbudget.races.prediction import FactorModel
from evalbudget.races.samplers import RacingSampler
from evalbudget.sampler import Kind

M, N = 6, 80


def recording(models: int = M, *, repeats: int = 1, missing: float = 0.0, seed: int = 0) -> RecordedScores:
    rng = np.random.default_rng(seed)
    chance = np.clip(np.linspace(0.3, 0.8, models)[:, None] + rng.normal(0, 0.2, N), 0, 1)
    scores = (rng.random((models, N, 1, repeats)) < chance[:, :, None, None]).astype(np.float32)
    scores[rng.random(scores.shape) < missing] = np.nan
    return RecordedScores(
        scores,
        tuple(f"model {m}" for m in range(models)),
        tuple(f"item {i}" for i in range(N)),
        ("judge",),
    )


def test_a_row_is_what_a_race_by_hand_gives() -> None:
    recorded, budget = recording(missing=0.05), 200
    row = backtest_race(recorded, ["ucb-e"], [budget], seeds=[3], batch=8).rows[0]
    sampler = plugins().sampler("ucb-e", Kind.MODELS)(
        Design(recorded.items, recorded.models), seed=3, batch=8
    )  # type: ignore[call-arg]
    assert isinstance(sampler, RacingSampler)
    values = recorded.scores[:, :, 0, 0].astype(np.float64)
    while sampler.asked < budget:
        cells = sampler.next_cells(budget - sampler.asked)
        assert cells is not None
        sampler.learn(cells, values[cells.model, cells.item])
    truth = np.nanmean(values, axis=1)
    answer = sampler.leader()
    assert row.p_best == (truth[answer] == truth.max())
    assert row.simple_regret == pytest.approx(truth.max() - truth[answer])
    assert row.p_top == (truth.max() - truth[answer] <= 0.01)
    assert row.evaluations == budget
    found = [e.confidence_interval(0.95) for e in model_means([sampler.draws(m) for m in range(M)])]
    assert row.coverage == np.mean([i.low <= t <= i.high for i, t in zip(found, truth, strict=True)])
    assert row.half_width == pytest.approx(np.mean([i.high - i.low for i in found]) / 2)


def test_one_run_to_several_budgets_is_several_runs() -> None:
    recorded = recording()
    samplers = ["uniform", "ucb-e", "successive-rejects", "sequential-halving", "lucb"]
    budgets = [100, 177, 300]
    together = backtest_race(recorded, samplers, budgets, seeds=2, batch=8).rows
    apart = [row for b in budgets for row in backtest_race(recorded, samplers, [b], seeds=2, batch=8).rows]
    for one, other in zip(together, apart, strict=True):
        assert (one.sampler, one.p_best, one.simple_regret, one.evaluations, one.half_width) == (
            other.sampler,
            other.p_best,
            other.simple_regret,
            other.evaluations,
            other.half_width,
        )


def test_budgets_are_shares_of_the_grid_or_per_item() -> None:
    rows = backtest_race(recording(), ["uniform"], ["25%", "2x", 300, "100%", Budget(90)], seeds=1).rows
    assert [row.budget for row in rows] == [120, 160, 300, 480, 90]
    assert [row.budget_asked for row in rows] == ["25%", "2x", "300", "100%", "90"]
    assert rows[3].p_best == 1.0
    assert rows[3].half_width == 0.0
    assert rows[3].coverage == 1.0


def test_repeats_are_drawn_once_per_replay() -> None:
    recorded = recording(repeats=3)
    rows = backtest_race(recorded, ["uniform", "ucb-e"], ["100%"], seeds=5).rows
    assert [row.p_best for row in rows] == [1.0, 1.0]  # the truth is that of the scores drawn
    assert all(row.coverage == 1.0 and row.half_width == 0.0 for row in rows)


def test_missing_cells_fail_and_cost() -> None:
    result = backtest_race(recording(missing=0.2), ["uniform"], ["100%"], seeds=2)
    assert result.missing > 50
    assert result.rows[0].evaluations == M * N
    assert result.rows[0].coverage == 1.0
    assert f"{result.missing} cells have no recorded score" in str(result.table()).replace("\n", " ")


def test_a_model_without_any_score_is_never_the_best() -> None:
    recorded = recording()
    scores = recorded.scores.copy()
    scores[-1] = np.nan
    silent = RecordedScores(scores, recorded.models, recorded.items, recorded.raters)
    row = backtest_race(silent, ["ucb-e"], ["90%"], seeds=3, batch=8).rows[0]
    assert row.p_best == 1.0
    assert np.isfinite(row.simple_regret)


def test_the_score_range_scales_regret_and_epsilon() -> None:
    recorded = recording()
    wide = RecordedScores(10 * recorded.scores, recorded.models, recorded.items, recorded.raters)
    one = backtest_race(recorded, ["ucb-e"], ["30%"], seeds=5, batch=8, top=0.2).rows[0]
    ten = backtest_race(wide, ["ucb-e"], ["30%"], seeds=5, batch=8, top=0.2, score_range=(0.0, 10.0)).rows[0]
    assert ten.simple_regret == pytest.approx(10 * one.simple_regret)
    assert ten.half_width == pytest.approx(10 * one.half_width)
    assert (ten.p_top, ten.top) == (one.p_top, 2.0)


def test_json_has_the_keys_of_the_issue() -> None:
    result = backtest_race(recording(), ["uniform"], ["50%"], seeds=2, intervals=False)
    (row,) = json.loads(result.to_json())
    wanted = {
        "sampler",
        "budget",
        "p_best",
        "p_top",
        "simple_regret",
        "evaluations",
        "coverage",
        "half_width",
    }
    assert wanted | {"seconds"} <= row.keys()
    assert row["coverage"] is None
    assert "half-" not in str(result.table())


def test_history_is_matched_by_item_and_forgets_the_racers(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALBUDGET_CACHE", str(tmp_path_factory.mktemp("cache")))
    earlier = recording(12, seed=1)
    factors = history_of(earlier, without=["model 0", "model 1"])
    assert factors.U.shape[0] == 10
    result = backtest_race(
        recording(), ["pulse", "naive-pooling"], ["50%"], seeds=2, batch=8, history=factors
    )
    assert "80 of the 80 items" in result.history
    assert "History has 80 of the 80 items" in str(result.table())
    with pytest.raises(InvalidInputError, match="only models that take part"):
        history_of(earlier, without=earlier.models)


def test_a_visit_with_a_history_is_narrower_than_uniform_draws() -> None:
    rng = np.random.default_rng(3)
    chance = 1.0 / (1.0 + np.exp(-rng.normal(0.0, 4.0, 300) - rng.normal(0.0, 0.5, (26, 1))))
    scores = (rng.random(chance.shape) < chance).astype(np.float32)
    items = tuple(f"item {i}" for i in range(300))
    new = RecordedScores(scores[:2, :, None, None], ("new 0", "new 1"), items, ("exact",))
    history = FactorModel.train(scores[2:], items, rank=0, ridge=1.0)
    result = backtest_race(new, ["uniform", "visit"], ["40%"], seeds=4, history=history, workers=1)
    uniform, visit = result.rows
    assert visit.evaluations == uniform.evaluations == 240
    assert visit.coverage == 1.0
    assert visit.half_width < 0.8 * uniform.half_width


def test_history_of_other_items_is_ignored() -> None:
    earlier = recording(12, seed=1)
    other = RecordedScores(
        earlier.scores, earlier.models, tuple(f"other {i}" for i in range(N)), earlier.raters
    )
    result = backtest_race(recording(), ["ucb-e"], ["50%"], seeds=1, batch=8, history=history_of(other))
    assert "history ignored" in result.history


def test_what_cannot_be_raced_is_refused() -> None:
    recorded = recording()
    with pytest.raises(InvalidInputError, match="needs two or more"):
        backtest_race(recorded.select(model="model 1"), ["ucb-e"])
    with pytest.raises(UnknownNameError, match="'ucb-e'"):
        backtest_race(recorded, ["ucbe"])
    with pytest.raises(BudgetError, match="first readings alone take 384"):
        backtest_race(recorded, ["ucb-e"], ["10%"])
    with pytest.raises(BudgetError, match="share of all of them"):
        backtest_race(recorded, ["ucb-e"], ["$5"])
    wide = RecordedScores(10 * recorded.scores, recorded.models, recorded.items, recorded.raters)
    with pytest.raises(InvalidInputError, match="--score-range"):
        backtest_race(wide, ["ucb-e"])
    with pytest.raises(InvalidInputError, match="top"):
        backtest_race(recorded, ["ucb-e"], top=-0.1)
    panel = RecordedScores(
        np.concatenate([recorded.scores, recorded.scores], axis=2),
        recorded.models,
        recorded.items,
        ("a", "b"),
    )
    with pytest.raises(InvalidInputError, match="--rater"):
        backtest_race(panel, ["ucb-e"])
    assert backtest_race(panel, ["uniform"], ["50%"], seeds=1, rater="b").rows[0].evaluations == 240
