"""Weights fixed before each reading: small cases by hand; unbiased, summed over every possible run."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from evalbudget import Allocation, Cell, Design, Reading
from evalbudget.journal import Journal, resume
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.repeats.samplers import Auto, EBBernstein, RatingKernel
from evalbudget.repeats.samplers._unbiased_weights import Shares
from evalbudget.testing import gaussian, play

UNIT = 2.0**-50


def weights(shares: Shares, item: int, n: int, asked: int = 0) -> list[float | None]:
    """Of n readings of one item, each of which comes back."""
    given = []
    for epoch in range(n):
        given.append(shares.of_next(item, epoch, epoch, asked))
        shares.came_back(item, epoch)
    return given


def close(*values: float) -> list[object]:
    """Exact but for whole multiples of 2^-50."""
    return [pytest.approx(value, abs=2 * UNIT) for value in values]


@pytest.mark.parametrize(
    ("items", "budget", "given"),
    [
        # c = 5 - n: 1/5, then 4/5 * 1/4 ..., and what is left for the held-out one is 1/5
        pytest.param(3, 15, (0.2, 0.2, 0.2, 0.2), id="whole rounds give every reading the same"),
        pytest.param(3, 17, (1 / 5, 1 / 5), id="of 17 for 3 items whole rounds count"),
        pytest.param(3, 14, (1 / 4, 1 / 4), id="of 14 for 3 items whole rounds count"),
        pytest.param(2, 4, (1 / 2, 1 / 4, 1 / 8, 1 / 16), id="beyond the planned half of what is left"),
        # c = n: 1/2, then 1/2 * 1/3, then 1/3 * 1/4
        pytest.param(2, None, (1 / 2, 1 / 6, 1 / 12), id="without a budget as many again as were asked"),
    ],
)
def test_shares_of_the_warm_up_by_hand(items: int, budget: int | None, given: tuple[float, ...]) -> None:
    assert weights(Shares(items, budget), 1, 1 + len(given)) == [None, *close(*given)]


def test_after_the_warm_up_an_items_part_of_the_budget_is_planned() -> None:
    shares = Shares(4, 40)
    assert shares.of_next(2, 0, 0, 0) is None
    # 3 of 12 readings so far: 10 of 40 in the end, 7 more
    assert shares.of_next(2, 3, 3, 12) == close(1 / 8)[0]
    # 4 of 13: ceil(12.3) = 13 in the end, 9 more
    assert shares.of_next(2, 4, 4, 13) == close(7 / 8 / 10)[0]
    # beyond the budget one more is planned
    assert shares.of_next(2, 5, 5, 60) == close(7 / 8 * 9 / 10 / 2)[0]


def test_a_whole_part_of_the_budget_is_not_rounded_up() -> None:
    shares = Shares(4, 40)
    shares.of_next(0, 0, 0, 0)
    assert shares.of_next(0, 1, 2, 20) == close(1 / 3)[0]  # 4 in the end, 2 more
    shares = Shares(4, 41)
    shares.of_next(0, 0, 0, 0)
    assert shares.of_next(0, 1, 2, 20) == close(1 / 4)[0]  # 4.1, so 3 more


def test_no_more_is_planned_than_the_item_needs() -> None:
    shares = Shares(4, 40)
    shares.of_next(0, 0, 0, 0)
    assert shares.of_next(0, 1, 3, 12, most=3) == close(1 / 4)[0]  # the budget would pay for 7 more
    assert shares.of_next(0, 2, 4, 13, most=90) == close(3 / 4 / 10)[0]
    assert shares.of_next(0, 3, 5, 14, most=-2) == close(3 / 4 * 9 / 10 / 2)[0]
    shares = Shares(4, None)
    shares.of_next(0, 0, 0, 0)
    assert shares.of_next(0, 1, 3, 12, most=7) == close(1 / 8)[0]


def test_a_failed_reading_gives_its_weight_back() -> None:
    shares = Shares(1, 4)
    assert [shares.of_next(0, epoch, epoch, 0) for epoch in range(3)] == [None, *close(0.25, 0.25)]
    shares.came_back(0, 1)
    shares.failed(0, 2)
    assert shares.of_next(0, 3, 2, 0) == close(0.25)[0]
    shares.failed(0, 1)  # it came back before: nothing is given back
    assert shares.of_next(0, 4, 3, 0) == close(0.25)[0]


def test_when_the_held_out_reading_fails_the_next_one_asked_is_held_out() -> None:
    shares = Shares(2, 8)
    assert shares.of_next(0, 0, 0, 0) is None
    assert shares.of_next(0, 1, 1, 0) == close(0.25)[0]
    assert shares.holds(0, 0)
    assert not shares.holds(0, 1)
    assert not shares.holds(1, 0)
    shares.failed(0, 0)
    assert not shares.holds(0, 0)
    assert shares.of_next(0, 2, 1, 0) is None
    assert shares.holds(0, 2)
    assert shares.of_next(0, 3, 2, 0) == close(0.25)[0]  # 3/4 left, 2 planned
    shares.failed(0, 3)
    assert shares.holds(0, 2)


def test_asked_again_a_reading_in_flight_keeps_its_weight() -> None:
    shares = Shares(1, 4)
    given = [shares.of_next(0, epoch, epoch, 0) for epoch in (0, 1)]
    assert [shares.of_next(0, epoch, epoch, 0) for epoch in (0, 1)] == given
    assert shares.of_next(0, 2, 2, 0) == close(0.25)[0]


def test_weights_of_an_earlier_run_are_taken_over_exactly() -> None:
    earlier, later = Shares(2, 10), Shares(2, 10)
    given = [earlier.of_next(1, epoch, epoch, 0) for epoch in range(3)]
    for epoch, weight in enumerate(given):
        later.assume(1, epoch, weight)
    assert later.holds(1, 0)
    assert [later.of_next(1, epoch, epoch, 0) for epoch in range(3)] == given
    for shares in (earlier, later):
        shares.came_back(1, 1)
        shares.failed(1, 2)
    assert later.of_next(1, 3, 2, 0) == earlier.of_next(1, 3, 2, 0)


def test_failures_may_come_back_in_any_order() -> None:
    """Weights are whole multiples of 2^-50, so giving them back adds up to the same."""
    last = set()
    for order in itertools.permutations((2, 3, 5)):
        shares = Shares(1, 7)
        for epoch in range(6):
            shares.of_next(0, epoch, epoch, 0)
        for epoch in order:
            shares.failed(0, epoch)
        last.add(shares.of_next(0, 6, 3, 0))
    assert len(last) == 1
    (weight,) = last
    assert weight is not None
    assert weight == close(1 / 7)[0]
    assert weight / UNIT == round(weight / UNIT)


# by a sampler


def test_the_warm_up_shares_by_rounds_and_the_rest_by_what_an_item_got() -> None:
    sampler = EBBernstein(Design.of_items(2), budget=12)
    requests = [e.request for e in play(sampler, 9, score=lambda c: gaussian(c) * (1 + 9 * c.item))]
    requests = [r for k, r in enumerate(requests) if k % 2 == 0]  # each is told at once
    left, n = {0: Fraction(1), 1: Fraction(1)}, {0: 0, 1: 0}
    for asked, request in enumerate(requests):
        item = request.cell.item
        if n[item] == 0:
            assert request.weight is None
        else:
            planned = max(1, 6 - n[item] if n[item] < 3 else -(-n[item] * 12 // asked) - n[item])
            assert request.weight == pytest.approx(float(left[item] / (planned + 1)), abs=9 * UNIT)
            left[item] -= left[item] / (planned + 1)
        n[item] += 1
    assert n[0] != n[1]


@pytest.mark.parametrize("sampler", [EBBernstein, RatingKernel, Auto])
def test_a_journal_of_another_budget_is_adopted_with_the_weights_it_says(sampler: type[EBBernstein]) -> None:
    journal, recorded = Journal(), play(sampler(Design.of_items(4), budget=30), 25)
    for event in recorded:
        journal.append(event if event.reading else type(event)(event.request, adopted=True))
    again = sampler(Design.of_items(4), budget=60)
    resume(again, journal)
    given = {0: 0.0, 1: 0.0, 2: 0.0, 3: 0.0}
    for event in [*recorded, *play(again, 60)]:
        if event.reading is not None and event.request.weight is not None:
            given[event.request.cell.item] += event.request.weight
    assert all(0.0 < total < 1.0 for total in given.values())


def test_without_holding_out_there_are_no_weights() -> None:
    sampler = EBBernstein(Design.of_items(3), hold_out=False, budget=20)
    assert sampler.allocation is Allocation.ADAPTIVE
    assert {event.request.weight for event in play(sampler, 20)} == {None}
    assert not sampler.holds_out(Cell())


# unbiased, exactly

BUDGET = 9


def expectations(
    make: Callable[[], EBBernstein], chances: list[float], failing: frozenset[int] = frozenset()
) -> tuple[list[float], list[float], int]:
    """E of the weighted and of the plain mean after every number of requests, over all possible runs.

    Scores are coins; requests whose number is in ``failing`` fail. nan while an item may have no reading.
    Last, how many different allocations there were in the end.
    """
    K = len(chances)
    weighted, plain = np.zeros(BUDGET + 1), np.zeros(BUDGET + 1)
    seen: set[tuple[int, ...]] = set()
    for coins in itertools.product((0.0, 1.0), repeat=BUDGET - len(failing)):
        sampler, left, chance = make(), list(coins), 1.0
        rows: list[tuple[int, int, float, float]] = []
        means = []
        for k in range(BUDGET + 1):
            values = [np.nan, np.nan]
            if len({row[0] for row in rows}) == K:
                item_, epoch_, value_, weight_ = zip(*rows, strict=True)
                readings = ItemReadings.of(item_, epoch_, value_, n_items=K, weight=weight_)
                values = [float(readings.weighted_means.mean()), float(readings.moments.mean.mean())]
            means.append(values)
            if k == BUDGET:
                break
            (request,) = sampler.ask(1)
            if k in failing:
                sampler.tell([Reading(request, None)])
                continue
            _, item, epoch, _ = request.cell
            score = left.pop()
            chance *= chances[item] if score else 1 - chances[item]
            rows.append((item, epoch, score, np.nan if request.weight is None else request.weight))
            sampler.tell([Reading(request, score)])
        weighted += chance * np.array(means)[:, 0]
        plain += chance * np.array(means)[:, 1]
        seen.add(sampler.counts())
    return weighted.tolist(), plain.tolist(), len(seen)


@pytest.mark.parametrize("budget", [None, BUDGET, 2 * BUDGET])
@pytest.mark.parametrize("sampler", [EBBernstein, RatingKernel])
def test_unbiased_in_every_sum_over_all_runs(sampler: type[EBBernstein], budget: int | None) -> None:
    chances = [0.8, 0.35]
    truth = sum(chances) / 2
    weighted, plain, allocations = expectations(lambda: sampler(Design.of_items(2), budget=budget), chances)
    assert allocations > 1
    assert weighted[2:] == pytest.approx([truth] * (BUDGET - 1), abs=1e-12)
    assert abs(plain[-1] - truth) > 1e-4


@pytest.mark.parametrize("failing", [{1}, {0, 5}, {3, 7}, {2, 6, 7}])
@pytest.mark.parametrize("sampler", [EBBernstein, RatingKernel])
def test_unbiased_with_failures_in_every_sum_over_all_runs(
    sampler: type[EBBernstein], failing: set[int]
) -> None:
    chances = [0.75, 0.4]
    weighted, _, _ = expectations(
        lambda: sampler(Design.of_items(2), budget=BUDGET), chances, frozenset(failing)
    )
    truth = sum(chances) / 2
    known = [value for value in weighted if not np.isnan(value)]
    assert len(known) >= BUDGET - 4
    assert known == pytest.approx([truth] * len(known), abs=1e-12)
