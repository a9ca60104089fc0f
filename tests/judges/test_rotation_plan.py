from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import t as student_t
from tests.claims import binomial_claim, pinned, replications, variant
from tests.judges.estimates.panels import NAMES, Panel, items, line, scored

from evalbudget.errors import InvalidInferenceError, InvalidInputError, UnknownNameError
from evalbudget.judges._plan import Plan, Prices, Refusal, forecast, plan_rotations
from evalbudget.judges.estimates import (
    JudgeScores,
    VarianceComponents,
    judge_mean_over_sampled_items,
    panel_mean,
    variance_components,
)
from evalbudget.judges.estimates._scores import Source
from evalbudget.judges.schedules import All, Cyclic, JudgeSchedule, Priced, Random
from references.anova import variance_components_literal

EQUAL = Prices(np.ones(5))
WORLD = Panel(interaction=0.3)


def only(strategy: str, plans: tuple[Plan | Refusal, ...]) -> Plan | Refusal:
    return next(plan for plan in plans if plan.strategy == strategy)


def pilot(n: int = 3000, m: int = 3, seed: int = 0) -> VarianceComponents:
    table = WORLD.table(n, m, np.random.default_rng(seed))
    return variance_components(JudgeScores.from_table(table, judges=NAMES))


@pytest.mark.claim
@pytest.mark.parametrize(
    ("cls", "m"),
    [
        variant(All, 1),
        variant(All, 2),
        variant(Random, 1),
        variant(Random, 4),
        variant(Cyclic, 1),
        (Cyclic, 4),
        (Priced, 1),
    ],
)
def test_forecast_against_simulation(cls: type[JudgeSchedule], m: int) -> None:
    prices = Prices(np.array([1.0, 2, 5, 15, 30]))
    R, rng, n, found = replications(72, 5000), np.random.default_rng(40), 60, []
    more = {"prices": prices.per_call.tolist()} if cls is Priced else {}
    for seed in range(R):
        s = scored(WORLD.table(n, m, rng), cls(items(n), NAMES, epochs=m, seed=seed, **more))
        found.append((panel_mean(s) if cls.weighs_judges else judge_mean_over_sampled_items(s)).value)
    predicted = forecast(pilot(), cls.name, m, prices).variance / n
    assert np.var(found) == pytest.approx(predicted, rel=0.07 + 4 * np.sqrt(2 / R))


def test_cyclic_against_the_papers_formula() -> None:
    table = Panel().table(80, 10, np.random.default_rng(1))
    p, _ = variance_components_literal(JudgeScores.from_table(table, judges=NAMES))
    a, b, e, g = (p[s] for s in ("item", "generation", "residual", "judge"))
    calls = 5
    assert forecast(p, "all", 1, EQUAL).variance - a == pytest.approx((5 * b + e) / calls)
    assert forecast(p, "random", 5, EQUAL).variance - a == pytest.approx((b + g + e) / calls)
    assert forecast(p, "cyclic", 5, EQUAL).variance - a == pytest.approx((b + e) / calls)


@pytest.mark.claim
@pytest.mark.parametrize(("used", "m"), [(1, 1), (2, 3), (4, 1)])
def test_some_of_the_judges_against_simulation(used: int, m: int) -> None:
    """The world's judges are given: the lot falls on some of them, anew for every evaluation."""
    R, rng, n = replications(360, 6000), np.random.default_rng(41), 60
    off = []
    for _ in range(R):
        table = WORLD.table(n, m, rng)
        off.append(table[:, rng.choice(5, size=used, replace=False)].mean())
    found = forecast(pilot(), "some", m, EQUAL, used=used)
    assert (found.calls, found.used) == (m * used, used)
    assert np.var(off) == pytest.approx(found.variance / n + found.fixed, rel=0.07 + 4 * np.sqrt(2 / R))


def test_some_of_the_judges_are_planned_beside_the_rotations() -> None:
    found, prices = pilot(), Prices(np.array([1.0, 1.0, 1.0, 2.0, 4.0]))
    four = only("some", plan_rotations(found, prices, half_width=1.0, judges_used=4))
    assert isinstance(four, Plan)
    assert (four.judges, four.calls) == (4, four.items * four.generations * 4)
    assert four.cost == pytest.approx(four.items * four.generations * 8.0)  # the dearest, should it be they
    lot = found.combine({Source.JUDGE: 1 / 2}, truncated=True) * 3 / 4
    refused = only("some", plan_rotations(found, EQUAL, half_width=1.9 * np.sqrt(lot), judges_used=2))
    assert isinstance(refused, Refusal)
    assert "any number of items" in refused.reason
    assert isinstance(
        only("some", plan_rotations(found, EQUAL, half_width=2.1 * np.sqrt(lot), judges_used=2)), Plan
    )
    assert "some" not in {plan.strategy for plan in plan_rotations(found, EQUAL, half_width=0.2)}
    for used in (0, 5, 9):
        with pytest.raises(InvalidInputError, match="number from 1 to 4"):
            plan_rotations(found, EQUAL, half_width=0.2, judges_used=used)


def test_half_width_plans_reach_it_and_nothing_smaller_does() -> None:
    found = pilot()
    for plan in plan_rotations(found, EQUAL, half_width=0.1):
        assert isinstance(plan, Plan)
        assert plan.half_width <= 0.1
        v = forecast(found, plan.strategy, plan.generations, EQUAL).variance
        lost = 5 if plan.strategy in ("cyclic", "priced") and plan.generations == 1 else 1
        fewer = plan.items - 1
        assert student_t.ppf(0.975, fewer - lost) * np.sqrt(v / fewer) > 0.1 * 0.9999
        assert plan.calls == plan.items * plan.generations * (5 if plan.strategy == "all" else 1)


def test_dear_generations_ask_for_more_judging_and_few_items_for_more_generations() -> None:
    found = pilot()
    dear = {p.strategy: p for p in plan_rotations(found, Prices(np.ones(5), 50.0), half_width=0.1)}
    assert dear["all"].cost < dear["cyclic"].cost  # type: ignore[union-attr]
    few = only("cyclic", plan_rotations(found, EQUAL, half_width=0.115, max_items=420))
    assert isinstance(few, Plan)
    assert few.generations > 1
    assert few.items <= 420


def test_money_is_never_exceeded_and_priced_is_narrower() -> None:
    prices = Prices(np.array([1.0, 2, 5, 15, 30]))
    plans = {p.strategy: p for p in plan_rotations(pilot(), prices, money=2000)}
    assert all(isinstance(p, Plan) and p.cost <= 2000 for p in plans.values())
    assert plans["priced"].half_width < plans["cyclic"].half_width  # type: ignore[union-attr]
    assert sum(plans["priced"].shares) == pytest.approx(1)  # type: ignore[union-attr]


def test_what_the_pilot_cannot_tell_is_refused_with_the_reason() -> None:
    table = WORLD.table(60, 2, np.random.default_rng(2))
    once = variance_components(scored(table, Cyclic(items(60), NAMES)))
    plans = {p.strategy: p for p in plan_rotations(once, EQUAL, half_width=0.2)}
    refused = plans["all"]
    assert isinstance(refused, Refusal)
    assert "gives only the sum item + generation" in refused.reason
    assert isinstance(plans["cyclic"], Plan)
    assert plans["cyclic"].generations == 1
    with pytest.raises(InvalidInferenceError, match="of each item, by different judges"):
        forecast(once, "cyclic", 2, EQUAL)
    with pytest.raises(InvalidInferenceError, match="one generation per item"):
        forecast(once, "priced", 2, EQUAL)
    crossed_once = variance_components(JudgeScores.from_table(table[:, :, :1], judges=NAMES))
    assert isinstance(only("all", plan_rotations(crossed_once, EQUAL, half_width=0.2)), Plan)


def test_out_of_reach_is_said() -> None:
    found = pilot()
    far = only("cyclic", plan_rotations(found, EQUAL, half_width=0.01, max_items=50))
    assert isinstance(far, Refusal)
    assert "out of reach with 50 items" in far.reason
    poor = only("cyclic", plan_rotations(found, EQUAL, money=3))
    assert isinstance(poor, Refusal)
    assert "does not buy enough" in poor.reason


def test_bad_input() -> None:
    found = pilot(50)
    for width in (0.0, -1.0, float("nan")):
        with pytest.raises(InvalidInputError, match="half-width is"):
            plan_rotations(found, EQUAL, half_width=width)
    with pytest.raises(InvalidInputError, match="money to spend"):
        plan_rotations(found, EQUAL, money=0)
    with pytest.raises(UnknownNameError, match="Did you mean 'cyclic'"):
        forecast(found, "cyclc", 1, EQUAL)
    with pytest.raises(InvalidInputError, match="2 prices for the pilot's 5 judges"):
        forecast(found, "all", 1, Prices(np.ones(2)))
    with pytest.raises(InvalidInputError, match="prices per call"):
        Prices(np.array([1.0, -1.0]))
    with pytest.raises(InvalidInputError, match="price of a generation"):
        Prices(np.ones(2), -1.0)
    with pytest.raises(InvalidInputError, match="generations is 0"):
        forecast(found, "all", 0, EQUAL)
    with pytest.raises(InvalidInputError, match="level"):
        plan_rotations(found, EQUAL, money=10, level=2)


@pytest.mark.parametrize("m", [1, 3, 5, 7, 12])
def test_what_an_interaction_costs(m: int) -> None:
    """Against the mean over m judges in turn, or drawn anew each time, of one item's K interactions."""
    found = pilot()
    rng, K = np.random.default_rng(m), 5
    interaction = rng.normal(0, 1, (40_000, K))
    turns = interaction[:, np.arange(m) % K].mean(axis=1)
    drawn = np.take_along_axis(interaction, rng.integers(K, size=(40_000, m)), axis=1).mean(axis=1)
    for strategy, mean in (("cyclic", turns), ("random", drawn)):
        rest = found["item"] + (found["generation"] + found["residual"]) / m
        rest += found["judge"] / m if strategy == "random" else 0.0
        weight = (forecast(found, strategy, m, EQUAL).variance - rest) / found["item x judge"]
        assert weight == pytest.approx(mean.var(), rel=0.04)


@pytest.mark.claim
@pytest.mark.parametrize(("K", "money", "expected"), [(5, 10, 10), (20, 40, 10), (41, 82, 7)])
def test_thin_plans_keep_what_they_promise(K: int, money: int, expected: int) -> None:
    """Dear items, cheap generations: the plan buys as many generations of few items as it may."""
    world = Panel(item=0.25, generation=1.0, residual=1.0, gamma=line(K))
    judges, rng = [str(j) for j in range(K)], np.random.default_rng(K)
    table = world.table(60, 3, rng)
    found = variance_components(JudgeScores.from_table(table, judges=judges))
    plan = only("cyclic", plan_rotations(found, Prices(np.ones(K)), money=money))
    assert isinstance(plan, Plan)
    assert plan.items * plan.generations >= 2 * K
    R, missed, width = replications(150, 2000), 0, []
    for seed in range(R):
        schedule = Cyclic(items(plan.items), judges, epochs=plan.generations, seed=seed)
        interval = panel_mean(
            scored(world.table(plan.items, plan.generations, rng), schedule)
        ).confidence_interval()
        missed += not interval.low <= 0.0 <= interval.high
        width.append(interval.half_width)
    binomial_claim(missed, R, at_most=0.065)
    pinned(missed, expected)
    assert np.mean(width) == pytest.approx(plan.half_width, rel=0.15)


@pytest.mark.parametrize("money", [40, 70, 111, 500, 2000])
@pytest.mark.parametrize("generation", [0.0, 0.7])
def test_what_a_plan_buys_costs_no_more_than_the_money(money: float, generation: float) -> None:
    prices = Prices(np.array([30.0, 2, 5, 15, 1]), generation)
    for plan in plan_rotations(pilot(), prices, money=money):
        if isinstance(plan, Refusal):
            assert money < 120
            continue
        cls: type[JudgeSchedule] = {c.name: c for c in (All, Cyclic, Priced, Random)}[plan.strategy]
        more: dict[str, object] = {}
        if cls is Priced:
            # as the command line says it: only the ratio of price to variance decides
            relative = (prices.per_call + generation) / pilot().judge_variance
            more = {"prices": dict(zip(NAMES, relative.tolist(), strict=True))}
        spent = []
        for seed in range(40):
            schedule = cls(items(plan.items), NAMES, epochs=plan.generations, seed=seed, **more)
            asked = schedule.assign().judge
            spent.append(prices.per_call[asked].sum() + plan.items * plan.generations * generation)
        over = sum(cost > money * (1 + 1e-9) for cost in spent)
        assert over <= (4 if cls is Random else 0)
        assert plan.cost <= money
        if cls is Priced:
            assert np.allclose(np.bincount(asked, minlength=5) / asked.size, plan.shares)


def test_scores_that_never_differ_are_refused() -> None:
    constant = variance_components(JudgeScores.from_table(np.ones((20, 5, 2)), judges=NAMES))
    assert all(
        isinstance(p, Refusal) and "never differ" in p.reason
        for p in plan_rotations(constant, EQUAL, money=100)
    )


@pytest.mark.parametrize(("n", "m"), [(30, 1), (15, 2)])
def test_plans_know_the_degrees_that_fitting_judges_costs(n: int, m: int) -> None:
    K, world, prices = 15, Panel(item=5.0, gamma=line(15)), Prices(np.ones(15))
    judges, rng = [str(j) for j in range(K)], np.random.default_rng(0)
    found = variance_components(JudgeScores.from_table(world.table(200, 3, rng), judges=judges))
    plan = only("cyclic", plan_rotations(found, prices, money=30, max_items=n))
    assert isinstance(plan, Plan)
    assert (plan.items, plan.generations) == (n, m)
    error = np.sqrt(forecast(found, "cyclic", m, prices).variance / n)
    bought = (scored(world.table(n, m, rng), Cyclic(items(n), judges, epochs=m)) for _ in range(30))
    degrees = np.mean([panel_mean(s).details["degrees"] for s in bought])
    assert degrees < {1: 15.5, 2: 13}[m]
    assert plan.half_width / error == pytest.approx(student_t.ppf(0.975, degrees), rel=0.006)


def test_as_many_items_as_there_may_be_are_looked_through() -> None:
    """One answer of each of 800 million items, and not several of fewer, which cost more."""
    found = pilot()
    variance = forecast(found, "random", 1, EQUAL).variance
    plan = only("random", plan_rotations(found, EQUAL, half_width=1.96 * np.sqrt(variance / 8e8)))
    assert isinstance(plan, Plan)
    assert plan.generations == 1
    assert plan.items == pytest.approx(8e8, rel=1e-3)
