"""Replays with a budget in money: what is bought, what samplers are told, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest

from evalbudget.backtest import RecordedScores, backtest
from evalbudget.design import Design
from evalbudget.errors import BudgetError
from evalbudget.repeats._array_book import ArrayBook, Asked
from evalbudget.repeats.backtest._pool import Draws, Pool
from evalbudget.repeats.samplers import Uniform

K, REPEATS = 8, 6


def world(*, equal: bool = False, seed: int = 0) -> RecordedScores:
    """Coin flips whose failures cost twice as much, with a repeat missing here and there."""
    rng = np.random.default_rng(seed)
    scores = (rng.random((1, K, 1, REPEATS)) < 0.6).astype(float)
    costs = rng.uniform(0.1, 2.0, (1, K, 1, 1)) * (2.0 - scores)
    scores[rng.random(scores.shape) < 0.1] = np.nan
    names = ("m",), tuple(f"item {i}" for i in range(K)), ("r",)
    return RecordedScores(scores, *names, costs=np.full(scores.shape, 0.25) if equal else costs)


class Listening(Uniform):
    """Plain epochs that keep what they are told of money."""

    name = "listening"
    budgets: ClassVar[list[float | None]] = []

    def __init__(self, design: Design, *, budget: int | None = None, seed: int = 0) -> None:
        super().__init__(design, seed=seed)
        assert budget is None  # money is no number of readings

    def weigh_costs(self, budget: float | None = None) -> None:
        super().weigh_costs(budget)
        self.budgets.append(budget)


def test_each_reading_has_its_recorded_cost_and_begins_if_the_dearest_so_far_is_covered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded, usd = world(), 30.0
    asked: list[tuple[int, int]] = []
    told: list[tuple[float, float]] = []
    ask, tell = ArrayBook.ask, ArrayBook.tell

    def asking(book: ArrayBook, most: int) -> Asked | None:
        found = ask(book, most)
        if found is not None:
            asked.extend(zip(*(column.tolist() for column in found), strict=True))
        return found

    def telling(book: ArrayBook, value: Any, cost: Any) -> None:
        told.extend(zip(value.tolist(), cost.tolist(), strict=True))
        tell(book, value, cost)

    monkeypatch.setattr(ArrayBook, "ask", asking)
    monkeypatch.setattr(ArrayBook, "tell", telling)
    Listening.budgets.clear()
    (row,) = backtest(recorded, [Listening], [f"${usd:g}"], [3], workers=1).rows
    pool = Pool.of(recorded, 0, 0, min_repeats=2)
    draws, places = Draws(pool, 3), tuple(map(np.array, zip(*asked, strict=True)))
    assert draws.of(*places).tolist() == [value for value, _ in told]
    assert draws.costs_of(*places).tolist() == [cost for _, cost in told]
    spent = dearest = 0.0
    for (item, _), (value, cost) in zip(asked, told, strict=True):
        assert spent + dearest <= usd
        assert (value, cost) in zip(recorded.scores[0, item, 0], (recorded.costs[0, item, 0]), strict=True)  # type: ignore[index]
        spent, dearest = spent + cost, max(dearest, cost)
    assert spent + dearest > usd
    assert Listening.budgets == [usd]
    assert row.usd == pytest.approx(spent)
    assert (row.readings, row.budget, row.budget_asked) == (len(told), usd, "$30")


def test_equal_costs_buy_what_as_many_scores_do() -> None:
    recorded, samplers = world(equal=True), ["uniform", "eb-bernstein", "robin-hood"]
    money = backtest(recorded, samplers, ["$80"], 3, workers=1).rows
    scores = backtest(recorded, samplers, [320], 3, workers=1).rows
    for one, other in zip(money, scores, strict=True):
        assert (one.readings, one.usd, other.usd) == (320, 80.0, None)
        assert one.worst_item_error == other.worst_item_error
        assert one.rmse == other.rmse
        assert one.ratio == other.ratio


def test_money_and_scores_in_one_table() -> None:
    result = backtest(world(), budgets=["10x", "$60", "$90", "$0.5"], seeds=2, workers=1)
    text = str(result.table())
    assert "paid" in text
    assert "seconds" not in text
    assert max(map(len, text.splitlines())) <= 80
    assert "budget $0.50 is too small for uniform on the 8 items" in " ".join(text.split())
    assert [row.reason is None for row in result.rows] == [True] * 6 + [False] * 2
    alone = backtest(world(), budgets=["$60"], seeds=2, workers=1).rows
    assert alone == result.rows[2:4]


def test_refusals() -> None:
    recorded = world()
    assert recorded.costs is not None
    with pytest.raises(BudgetError, match="tokens, and recorded scores tell what readings cost in dollars"):
        backtest(recorded, budgets=["2Mtok"])
    with pytest.raises(BudgetError, match=r"\$5 is money, and 4\d of 4\d .*add a column cost"):
        backtest(replace(recorded, costs=None), budgets=["$5"])
    some = recorded.costs.copy()
    some[0, 0, 0, np.flatnonzero(~np.isnan(recorded.scores[0, 0, 0]))[0]] = np.nan
    with pytest.raises(BudgetError, match=r"and 1 of 4\d recorded scores do not say"):
        backtest(replace(recorded, costs=some), budgets=["$5"])
    with pytest.raises(BudgetError, match=r"'item 0'.*cost \$0, and what is free is asked without end"):
        backtest(replace(recorded, costs=np.nan_to_num(some)), budgets=["$5"])
    with pytest.raises(BudgetError, match=r"too small for uniform.*give more, or leave the sampler out"):
        backtest(recorded, budgets=["$0.1"], workers=1)
