"""Samplers that weigh costs: every decision against the formulas, and what comes of it."""

from __future__ import annotations

import math
import random

import pytest
from tests.asking import counts_of

from evalbudget import Cell, Design
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.samplers import Auto, EBBernstein, RepeatSampler, Robin, RobinHood, Uniform
from evalbudget.testing import gaussian, play


def cost_of(cell: Cell) -> float:
    """Items cost from 1 to 4096, give or take a factor."""
    return 4.0**cell.item * math.exp(random.Random(f"{cell}").gauss(0.0, 0.3))


def rating(cell: Cell) -> float:
    """One of five ratings."""
    return float(min(4, max(0, round(2.0 + 2.0 * gaussian(cell)))))


def slope(sampler: RepeatSampler) -> float:
    """Of ln(1/n) on ln(cost) once every item has the same variance."""
    sampler.weigh_costs()
    book = ArrayBook(sampler)
    while book.n < 6_000 and (asked := book.ask(6_000 - book.n)) is not None:
        book.tell(asked.epoch % 2.0, 10.0 ** (asked.item % 3))
    n = book.bought().counts.tolist()
    return (math.log(n[0]) - math.log(n[2])) / math.log(100.0)


@pytest.mark.parametrize(
    ("sampler", "power"),
    [
        (EBBernstein(Design.of_items(30), objective="mse"), 0.5),
        (Auto(Design.of_items(30), objective="mean"), 0.5),
        (Uniform(Design.of_items(30)), 0.0),
        (Robin(Design.of_items(30), variances=[1.0] * 30), 0.0),
        (RobinHood(Design.of_items(30)), 0.0),
    ],
    ids=lambda case: getattr(case, "name", ""),
)
def test_at_equal_variances_readings_follow_a_power_of_the_cost(sampler: RepeatSampler, power: float) -> None:
    assert slope(sampler) == pytest.approx(power, abs=0.035)


def test_a_score_that_never_varies_is_asked_in_turn_whatever_it_costs() -> None:
    sampler = Auto(Design.of_items(5))
    sampler.weigh_costs()
    assert counts_of(play(sampler, 100, score=lambda cell: 1.0, cost=cost_of), 5) == (20,) * 5


def test_dear_failures_make_an_item_dear() -> None:
    def counts(cost: float) -> tuple[int, ...]:
        sampler = Auto(Design.of_items(6), objective="mse")
        sampler.weigh_costs()
        played = play(
            sampler,
            600,
            score=lambda cell: None if cell.item == 0 and cell.epoch % 2 else rating(cell._replace(item=1)),
            cost=lambda cell: (cost if cell.item == 0 and cell.epoch % 2 else 1.0) + 0.01 * cell.item,
        )
        return counts_of(played, 6)

    assert counts(100.0)[0] < 0.7 * counts(1.0)[0]


def test_a_budget_in_money_ends_phases_as_its_number_of_readings_does() -> None:
    told, counted = Auto(Design.of_items(6)), Auto(Design.of_items(6), budget=120)
    told.weigh_costs(120 * 0.1)
    with_money = play(told, 120, score=rating, cost=lambda cell: 0.1)
    counting = play(counted, 120, score=rating)
    assert [r.request for r in with_money.readings] == [r.request for r in counting.readings]
