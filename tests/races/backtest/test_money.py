"""Races on recorded scores with a budget in money."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evalbudget import Design
from evalbudget.backtest import RecordedScores, backtest_race
from evalbudget.errors import BudgetError
from evalbudget.races.backtest._replay import Grid
from evalbudget.races.samplers import Race

M, N = 4, 60


def world(*, equal: bool = False, repeats: int = 1) -> RecordedScores:
    """The better a model, the dearer; one cell has no score."""
    rng = np.random.default_rng(0)
    scores = (rng.random((M, N, 1, repeats)) < np.linspace(0.3, 0.8, M)[:, None, None, None]).astype(float)
    costs = np.exp(rng.normal(size=scores.shape)) * np.array([0.1, 0.2, 0.2, 0.8])[:, None, None, None]
    scores[0, 3] = np.nan
    names = tuple(f"m{i}" for i in range(M)), tuple(f"i{i}" for i in range(N)), ("j",)
    return RecordedScores(scores, *names, costs=np.full(scores.shape, 0.25) if equal else costs)


@pytest.mark.parametrize("usd", [10.0, 25.0])
def test_a_race_is_what_one_cell_after_another_gives(usd: float) -> None:
    recorded = world(repeats=2)
    (row,) = backtest_race(recorded, ["race"], [f"${usd:g}"], [5], batch=4).rows
    grid = Grid.of(recorded, None)
    values, costs = grid.draw(5), grid.draw_costs(5)
    sampler = Race(Design(recorded.items, recorded.models), seed=5, batch=4)
    sampler.weigh_costs(usd)
    spent = dearest = 0.0
    while spent + dearest <= usd and (cells := sampler.next_cells(1)) is not None:
        paid = costs[cells.model, cells.item]
        sampler.learn(cells, np.asarray(values[cells.model, cells.item], dtype=np.float64), paid)
        spent, dearest = spent + float(paid[0]), max(dearest, float(paid[0]))
    assert row.evaluations == sampler.asked
    assert row.usd == pytest.approx(spent)
    truth = np.nanmean(values, axis=1)
    assert row.simple_regret == pytest.approx(truth.max() - truth[sampler.leader()])


def test_equal_costs_buy_what_as_many_evaluations_do() -> None:
    recorded, samplers = world(equal=True), ["uniform", "race", "ucb-e"]
    money = backtest_race(recorded, samplers, ["$25"], 3, batch=4).rows
    scores = backtest_race(recorded, samplers, [100], 3, batch=4).rows
    for one, other in zip(money, scores, strict=True):
        assert (one.usd, other.usd) == (25.0, None)
        assert (one.evaluations, one.p_best, one.half_width) == (100, other.p_best, other.half_width)


def test_money_for_everything_ends_with_the_grid() -> None:
    rows = backtest_race(world(), ["uniform", "sequential-halving"], ["$1000", "5%"], 2, batch=1).rows
    assert rows[0].evaluations == M * N
    assert rows[0].usd is not None
    assert rows[0].usd < 1000.0
    assert rows[1].evaluations <= M * N
    assert rows[2].usd is None
    text = str(backtest_race(world(), ["uniform"], ["$20", "50%"], 2, batch=1).table())
    assert "paid" in text
    assert max(map(len, text.splitlines())) <= 80


def test_refusals() -> None:
    with pytest.raises(BudgetError, match="tokens, and recorded scores tell what readings cost in dollars"):
        backtest_race(world(), budgets=["2Mtok"])
    with pytest.raises(BudgetError, match=r"\$5 is money, and 239 of 239 .*add a column cost"):
        backtest_race(replace(world(), costs=None), budgets=["$5"])
    with pytest.raises(
        BudgetError, match=r"\$0\.010 is too small.*before each had one evaluation.*give more"
    ):
        backtest_race(world(), budgets=["$0.01"], batch=4)
