"""When items are given up: exact values, what the table of the rule says, and what must not matter."""

from __future__ import annotations

import math
import time
from itertools import permutations

import numpy as np
import pytest
from tests.asking import Asking
from tests.claims import binomial_claim, pinned, replications

from evalbudget import Cell, Design, Reading
from evalbudget.book._given_up import GivenUp
from evalbudget.closing import closed, fewest_failures
from evalbudget.repeats.samplers import Uniform
from evalbudget.testing import gaussian, play


def e_value(fails: int, calls: int, others_fail: int, others: int) -> float:
    f0 = max(0.05, (others_fail + 1) / (others + 2))
    f1 = max(0.95, (1 + f0) / 2)
    return float((f1 / f0) ** fails * ((1 - f1) / (1 - f0)) ** (calls - fails))


def table(
    fails: int, calls: int, others_fail: int, others: int, n_items: int
) -> tuple[np.ndarray, np.ndarray]:
    """One item, and others asked once each, of which some failed; the rest was not asked."""
    return (
        np.array([fails] + [1] * others_fail + [0] * (n_items - 1 - others_fail)),
        np.array([calls] + [1] * others + [0] * (n_items - 1 - others)),
    )


@pytest.mark.parametrize(
    ("counts", "expected"),
    [((3, 3, 0, 97), 6859.0), ((6, 6, 30, 100), 932.8), ((7, 7, 30, 100), 2915.6), ((4, 5, 5, 100), 3614.01)],
)
def test_an_item_is_given_up_from_twenty_times_the_number_of_items(
    counts: tuple[int, int, int, int], expected: float
) -> None:
    assert e_value(*counts) == pytest.approx(expected, abs=0.05)
    largest = math.floor(expected / 20)  # number of items for which this is enough
    further = {"more_fails": counts[2], "more_calls": counts[3]}
    one = np.array([counts[0]]), np.array([counts[1]])
    assert closed(*one, more_items=largest - 1, **further).tolist() == [True]
    assert closed(*one, more_items=largest, **further).tolist() == [False]
    if largest > counts[3]:
        assert np.flatnonzero(closed(*table(*counts, largest))).tolist() == [0]
        assert not closed(*table(*counts, largest + 1)).any()


@pytest.mark.parametrize(("percent", "calls"), [(2, 3), (10, 4), (30, 7), (50, 12)])
def test_after_so_many_calls_the_worse_the_others_the_more(percent: int, calls: int) -> None:
    """Of 100 items one always fails."""
    for n in range(1, calls + 1):
        one = np.array([n]), np.array([n])
        found = closed(*one, more_items=99, more_fails=10 * percent, more_calls=1000)
        assert found.tolist() == [n == calls]


@pytest.mark.parametrize("n_items", [2, 5, 18, 19, 100, 10_000])
def test_no_item_is_given_up_with_fewer_failures_than_is_said(n_items: int) -> None:
    fewest = fewest_failures(n_items)
    for fails, expected in ((fewest - 1, False), (fewest, True)):
        one = np.array([fails]), np.array([fails])
        assert closed(*one, more_items=n_items - 1, more_calls=10**6).tolist() == [expected]


def test_readings_count_against_failures() -> None:
    fails, calls = np.array([4, 3, 3] + [0] * 97), np.array([5, 4, 6] + [10] * 97)
    assert np.flatnonzero(closed(fails, calls)).tolist() == [0]


@pytest.mark.parametrize("share", [0.1, 0.4, 0.8])
def test_many_items_that_always_fail_do_not_make_failing_look_ordinary(share: float) -> None:
    """All that fail are asked again and again, and the others were read at once."""
    n_items, dead = 100, round(100 * share)
    fails = np.zeros(n_items, dtype=np.int64)
    for n in range(1, 4):
        fails[:dead] = n
        found = closed(fails, np.where(fails > 0, fails, 1))
    assert found.tolist() == [True] * dead + [False] * (n_items - dead)


def test_a_model_that_answers_nothing_is_closed_as_a_whole() -> None:
    fails = np.zeros(100, dtype=np.int64)
    fails[:23] = 1
    assert not closed(fails, fails).any()
    fails[23] = 1
    assert closed(fails, fails).all()
    calls = fails.copy()
    calls[50] = 1  # one answer: it is up
    assert not closed(fails, calls).any()
    fails[:] = 0
    fails[:7] = 3  # seven items are too few to tell by
    assert not closed(fails, fails).any()


@pytest.mark.parametrize("n_items", [1, 2, 3, 5, 40])
@pytest.mark.parametrize("answers", [0, 60])
def test_where_nothing_comes_back_any_more_a_run_ends_and_says_so(n_items: int, answers: int) -> None:
    """From the start, or after so many answers."""
    sampler = Uniform(Design.of_items(n_items))
    told = 0

    def score(cell: Cell) -> float | None:
        nonlocal told
        told += 1
        return None if told > answers else 1.0

    played = play(sampler, 100_000, score=score)
    assert played.stopped == "every item closed after repeated failures"
    assert len(played.closed) == n_items
    assert len(played.readings) <= 24 + 2 * answers + (80 if answers else 8) * n_items


def test_closing_does_not_depend_on_the_order_of_completion() -> None:
    values = [1.0, None, None, None, None, None]
    sampler = Uniform(Design.of_items(1))
    for order in permutations(values):
        given_up = GivenUp(sampler.design, sampler.closes_as)
        for value in order:
            (given_up.failed if value is None else given_up.read)(Cell())
        assert given_up.now() == frozenset()
    given_up = GivenUp(sampler.design, sampler.closes_as)
    for _ in range(5):
        given_up.failed(Cell())
    assert given_up.now() == {Cell()}


def test_the_counts_that_samplers_keep_give_up_what_the_whole_table_gives_up() -> None:
    rng = np.random.default_rng(0)
    given_up = 0
    for seed in range(20):
        n_items = int(rng.integers(2, 40))
        chance = rng.choice([0.0, 0.1, 0.4, 1.0], n_items, p=[0.4, 0.2, 0.2, 0.2])
        sampler = Asking(Uniform(Design.of_items(n_items), seed=seed))
        fails, calls = np.zeros(n_items, dtype=np.int64), np.zeros(n_items, dtype=np.int64)
        for _ in range(60):
            readings = []
            for request in sampler.ask(3):
                failed = bool(rng.random() < chance[request.cell.item])
                fails[request.cell.item] += failed
                calls[request.cell.item] += 1
                readings.append(Reading(request, None if failed else 1.0))
            sampler.tell(readings)
            expected = np.flatnonzero(closed(fails, calls)).tolist()
            assert [cell.item for cell in sampler.closed] == expected
            given_up += bool(expected)
    assert given_up > 250


@pytest.mark.claim
@pytest.mark.parametrize(("failing", "most", "expected"), [(0.1, 1.15, 0), (0.3, 1.5, 0)])
def test_failures_at_random_give_up_no_item_and_cost_what_they_cost(
    failing: float, most: float, expected: int
) -> None:
    """100 items, ten readings of each."""
    runs, wrong, cost = replications(3, 400), 0, 0
    for seed in range(4, 4 + runs):
        rng, sampler = np.random.default_rng([seed, 29]), Asking(Uniform(Design.of_items(100), seed=seed))
        calls, scored, given_up = 0, np.zeros(100, dtype=int), np.zeros(100, dtype=bool)
        while (scored[~given_up] < 10).any():
            calls += 1
            (request,) = sampler.ask(1)
            failed = rng.random() < failing
            sampler.tell([Reading(request, None if failed else 1.0)])
            scored[request.cell.item] += not failed
            if failed:  # nothing is given up or taken up again otherwise
                given_up[:] = False
                given_up[[cell.item for cell in sampler.closed]] = True
        wrong += bool(sampler.closed)
        cost += calls
    binomial_claim(wrong, runs, at_most=0.05)
    pinned(wrong, expected)
    assert cost / (1000 * runs) <= most


def test_a_late_reading_opens_a_closed_item_again() -> None:
    """Whether a cell is closed depends on how often it failed and was read, not on the order."""
    sampler = Asking(Uniform(Design.of_items(1)))
    requests = sampler.ask(6)
    sampler.tell([Reading(request, None) for request in requests[:5]])
    assert list(sampler.closed) == [Cell()]
    assert list(sampler.ask(1)) == []
    sampler.tell([Reading(requests[5], gaussian(Cell()))])
    assert list(sampler.closed) == []
    assert len(sampler.ask(1)) == 1


def test_that_everything_fails_takes_no_time_that_grows_with_the_square() -> None:
    n = 10_000
    sampler = Asking(Uniform(Design.of_items(n)))
    asked = sampler.ask(n)
    sampler.tell([Reading(request, None) for request in asked])
    begun = time.process_time()
    assert sampler.ask(1) == ()
    assert time.process_time() - begun < 2.0
    assert len(sampler.closed) == n
