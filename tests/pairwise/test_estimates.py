"""Win rates, position bias and strengths, against hand counts, theory and an independent fit; edge cases."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import t

from evalbudget.errors import InvalidInputError
from evalbudget_pairwise import (
    Preference,
    Preferences,
    average_of,
    bradley_terry,
    positions,
    read_preferences,
    win_rate,
)
from evalbudget_pairwise._bradley_terry import ranks
from pairwise_sections.worlds import World


def of(*rows: tuple[str, str, str, float]) -> Preferences:
    return Preferences.of(Preference(*row) for row in rows)


def both(item: str, one: float, other: float, a: str = "a", b: str = "b") -> list[Preference]:
    """An item in both orders: value for a as the first, and value for b as the first."""
    return [Preference(item, a, b, one), Preference(item, b, a, other)]


def test_in_both_orders_the_win_rate_is_the_mean_of_means_with_students_error() -> None:
    pairs = [(1.0, 0.0), (1.0, 0.5), (0.0, 1.0), (1.0, 1.0), (0.5, 0.0)]
    rows = [row for n, (one, other) in enumerate(pairs) for row in both(f"q{n}", one, other)]
    found = win_rate(Preferences.of(rows), 0, 1)
    y = np.array([(one + 1.0 - other) / 2.0 for one, other in pairs])
    assert found.value == pytest.approx(y.mean())
    assert found.standard_error == pytest.approx(y.std(ddof=1) / np.sqrt(5))
    assert (found.items, found.degrees, found.position.value) == (5, 4, "both orders")
    # Student's, and Agresti & Coull's with two items more on each side: the wider one on each side
    more = np.concatenate([y, [0.0, 0.0, 1.0, 1.0]])
    for level in (0.5, 0.8):
        students = t.interval(level, 4, y.mean(), y.std(ddof=1) / np.sqrt(5))
        added = t.interval(level, 8, more.mean(), more.std(ddof=1) / 3.0)
        expected = max(0.0, min(students[0], added[0])), min(1.0, max(students[1], added[1]))
        assert found.interval(level) == pytest.approx(expected)
    low, high = found.interval(0.95)
    mirrored = -found
    assert mirrored.value == pytest.approx(1.0 - found.value)
    assert mirrored.interval(0.95) == pytest.approx((1.0 - high, 1.0 - low))


def test_in_one_order_each_it_is_the_mean_of_the_orders_means() -> None:
    forward, backward = [1.0, 1.0, 0.5, 1.0, 1.0, 0.0], [1.0, 0.0, 0.5]
    rows = [(f"f{n}", "a", "b", v) for n, v in enumerate(forward)]
    rows += [(f"g{n}", "b", "a", v) for n, v in enumerate(backward)]
    found = win_rate(of(*rows), 0, 1)
    assert found.value == pytest.approx((np.mean(forward) + 1.0 - np.mean(backward)) / 2.0)
    assert found.degrees == 7


@pytest.mark.parametrize("bias", [-0.3, 0.0, 0.3])
@pytest.mark.parametrize("both_orders", [True, False])
def test_a_constant_position_bias_cancels(bias: float, *, both_orders: bool) -> None:
    rate = [0.55 + 0.1 * ((n // 2) % 3 - 1) for n in range(20)]
    forward = [(f"q{n}", "a", "b", y + bias) for n, y in enumerate(rate) if both_orders or n % 2]
    backward = [(f"q{n}", "b", "a", 1.0 - y + bias) for n, y in enumerate(rate) if both_orders or not n % 2]
    found = of(*forward, *backward)
    assert win_rate(found, 0, 1).value == pytest.approx(0.545, abs=0.011)
    assert positions(found)[0].bias == pytest.approx(bias)


def test_a_pair_in_one_order_only_says_so_and_proves_nothing() -> None:
    found = of(*[(f"q{n}", "a", "b", 1.0) for n in range(100)])
    assert win_rate(found, 0, 1).position.value == "none"
    reading = read_preferences(found)
    assert not reading.pairs[0].both_ways
    assert reading.winner is None
    assert "only ever shown in one order" in reading.notes[0]
    assert math.isnan(reading.positions[0].bias)


def test_judges_who_saw_one_order_each_do_not_cancel_one_another() -> None:
    rows = [
        row
        for n in range(40)
        for row in (Preference(f"q{n}", "a", "b", 0.9, "x"), Preference(f"q{n}", "b", "a", 0.5, "y"))
    ]
    assert win_rate(Preferences.of(rows), 0, 1).untold > 0.0
    reading = read_preferences(Preferences.of(rows))
    assert (reading.winner, reading.pairs[0].both_ways) == (None, False)
    assert "one order by each judge" in reading.notes[0]
    more = [Preference(f"r{n}", "a", "b", 0.5, "y") for n in range(40)]
    reading = read_preferences(Preferences.of([*rows, *more]))
    assert (reading.pairs[0].both_ways, reading.pairs[0].one_order) == (True, ("x",))
    assert "x saw a and b in one order only" in reading.notes[0]
    assert reading.pairs[0].win_rate == pytest.approx((20 * 0.9 + 60 * 0.5) / 80), "of both judges"
    assert reading.pairs[0].unidentified == pytest.approx(0.25)


def test_one_item_has_no_interval() -> None:
    reading = read_preferences(Preferences.of(both("q", 1.0, 0.0)))
    assert math.isnan(reading.models[0].low)
    assert math.isnan(reading.models[0].strength_low)
    assert "One item shows no spread" in reading.notes[0]
    assert str(reading.table())


def test_the_average_of_the_others_combines_items() -> None:
    preferences = World((0.5, 0.0, -0.5), ties=0.2).preferences(50, 3)
    mean = average_of([win_rate(preferences, 0, other) for other in (1, 2)])
    per_item = np.array(
        [
            np.mean(
                [
                    preferences.value_for(0, np.array([row]))[0]
                    for row in np.flatnonzero(preferences.item == item)
                    if 0 in (preferences.first[row], preferences.second[row])
                ]
            )
            for item in range(50)
        ]
    )
    assert mean.value == pytest.approx(per_item.mean())
    assert mean.standard_error == pytest.approx(per_item.std(ddof=1) / np.sqrt(50))


def test_flips_are_counted_per_item_pair_and_judge() -> None:
    rows = both("flips", 1.0, 1.0) + both("stays", 1.0, 0.0) + both("tie", 0.5, 1.0) + both("back", 0.0, 0.0)
    found = positions(Preferences.of([*rows, Preference("once", "a", "b", 1.0)]))[0]
    assert (found.both_orders, found.flipped) == (4, 2)


def test_the_correlation_says_what_a_second_order_is_worth() -> None:
    """n items once have the variance s2/n, n/2 in both orders s2(1 + rho)/n: by simulation."""
    world = World((0.4, 0.0), position=0.8, agreement=0.6)
    once, twice, rho = [], [], []
    for seed in range(400):
        single = world.preferences(60, [1, seed], both=False)
        double = world.preferences(30, [2, seed])
        once.append(win_rate(single, 0, 1).value)
        twice.append(win_rate(double, 0, 1).value)
        rho.append(positions(double)[0].correlation)
    ratio = np.var(twice) / np.var(once)
    assert np.mean(rho) > 0.25
    assert ratio == pytest.approx(1.0 + np.mean(rho), rel=0.2)


def test_judges_have_a_bias_each_and_one_together() -> None:
    rows = [
        Preference(f"q{n}", first, second, value, judge)
        for n in range(30)
        for first, second in (("a", "b"), ("b", "a"))
        for judge, value in (("fair", 0.5), ("eager", 0.9))
    ]
    fair, eager, together = positions(Preferences.of(rows))
    assert (fair.judge, eager.judge, together.judge) == ("fair", "eager", "all")
    assert (fair.bias, eager.bias, together.bias) == pytest.approx((0.0, 0.4, 0.2))


# Bradley and Terry


def fitted_otherwise(preferences: Preferences) -> np.ndarray:
    """The same penalised likelihood, by a general minimiser and with another parametrisation."""
    k = len(preferences.models)

    def loss(theta: np.ndarray) -> float:
        strength, position = np.concatenate([[0.0], theta[: k - 1]]), theta[k - 1]
        gap = strength[preferences.first] - strength[preferences.second] + position
        p = 1.0 / (1.0 + np.exp(-gap))
        total = (preferences.value * np.log(p) + (1.0 - preferences.value) * np.log(1.0 - p)).sum()
        for a, b in preferences.pairs:
            p = 1.0 / (1.0 + np.exp(strength[b] - strength[a]))
            total += 0.5 * (np.log(p) + np.log(1.0 - p))
        p = 1.0 / (1.0 + np.exp(-position))
        return float(-(total + 0.5 * (np.log(p) + np.log(1.0 - p))))

    theta = minimize(loss, np.zeros(k), method="BFGS", options={"gtol": 1e-9}).x
    strength = np.concatenate([[0.0], theta[: k - 1]])
    return np.asarray(strength - strength.mean())


@pytest.mark.parametrize("k", [2, 3, 6])
def test_strengths_are_those_of_another_minimiser(k: int) -> None:
    world = World(tuple(np.linspace(1.0, -1.0, k)), position=0.5, ties=0.3)
    preferences = world.preferences(25, k)
    found = bradley_terry(preferences)
    np.testing.assert_allclose(found.strength, fitted_otherwise(preferences), atol=1e-5)


def test_the_covariance_is_that_of_leaving_items_out() -> None:
    world = World((0.8, 0.0, -0.8), position=0.4, ties=0.2)
    n = 120
    preferences = world.preferences(n, 5)
    found = bradley_terry(preferences)
    left_out = []
    for item in range(n):
        keep = preferences.item != item
        part = Preferences(
            preferences.items,
            preferences.models,
            preferences.judges,
            preferences.item[keep],
            preferences.first[keep],
            preferences.second[keep],
            preferences.judge[keep],
            preferences.value[keep],
        )
        left_out.append(bradley_terry(part).strength)
    spread = np.array(left_out) - np.mean(left_out, axis=0)
    jackknife = (n - 1) / n * spread.T @ spread
    np.testing.assert_allclose(np.diag(found.covariance), np.diag(jackknife), rtol=0.06)


def test_a_model_that_wins_everything_has_a_finite_strength_and_an_honest_interval() -> None:
    found = bradley_terry(Preferences.of([row for n in range(40) for row in both(f"q{n}", 1.0, 0.0)]))
    value, low, high = found.against(0, 1, 0.95)
    assert value == pytest.approx(80.5 / 81.0)
    assert 0.7 < low < 0.025 ** (1 / 40), "no more than 40 wins in 40 prove, by Clopper and Pearson"
    assert value < high < 1.0


def test_a_position_that_cannot_be_told_from_strength_is_left_out() -> None:
    found = bradley_terry(of(*[(f"q{n}", "a", "b", 0.8) for n in range(10)]))
    assert found.against(0, 1, 0.95)[0] == pytest.approx(8.5 / 11.0)


def test_ranks_are_told_apart_by_all_differences_at_once() -> None:
    found = ranks(World((2.0, 0.0, -0.05, -2.0)).preferences(150, 2), 0.95)
    assert found == [(1, 1), (2, 3), (2, 3), (4, 4)]


@pytest.mark.parametrize("k", [2, 4])
def test_names_do_not_matter(k: int) -> None:
    preferences = World(tuple(np.linspace(1.0, -1.0, k)), position=0.5, ties=0.2).preferences(30, 1)
    other = list(range(k))[::-1]
    turned = Preferences(
        preferences.items,
        preferences.models[::-1],
        preferences.judges,
        preferences.item,
        np.array(other)[preferences.first],
        np.array(other)[preferences.second],
        preferences.judge,
        preferences.value,
    )
    np.testing.assert_allclose(bradley_terry(preferences).strength, bradley_terry(turned).strength[::-1])
    for a, b in permutations(range(k), 2):
        one, same = win_rate(preferences, a, b), win_rate(turned, other[a], other[b])
        assert one.value == pytest.approx(same.value)
        assert one.standard_error == pytest.approx(same.standard_error)


# bad input


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], "no preference with a verdict"),
        ([Preference("q", "a", "b", None)], "1 without"),
        ([Preference("q", "a", "a", 1.0)], "against itself"),
        ([Preference("q", "a", "b", 1.5)], "not between 0 and 1"),
        ([Preference("q", "a", "b", math.nan)], "not between 0 and 1"),
        ([Preference("", "a", "b", 1.0)], "item is empty"),
        ([Preference("q", "a", "b", 1.0), Preference("q", "c", "d", 1.0)], r"\(a, b; c, d\)"),
    ],
)
def test_what_is_no_preference_is_refused(rows: list[Preference], told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        Preferences.of(rows)


def test_judgements_without_a_verdict_are_counted() -> None:
    rows = [*both("q", 1.0, 0.0), *both("r", 1.0, 0.0), Preference("s", "a", "b", None)]
    reading = read_preferences(Preferences.of(rows))
    assert (reading.judgements, reading.missing, reading.ties) == (4, 1, 0)
    assert "1 verdict is missing (1 of a, 1 of b)" in " ".join(reading.notes)
