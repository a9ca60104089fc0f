"""A random sample of the items: in proportion wherever it ends, every item as likely as any other."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chisquare
from tests.asking import Asking, first_items
from tests.claims import replications

from evalbudget import Budget, Cell, Design, Reading
from evalbudget.book import ALONE, Book
from evalbudget.errors import StoreError
from evalbudget.repeats.samplers import Sample
from evalbudget.sampler import Allocation, Sampler
from evalbudget.store import Address, Database
from evalbudget.testing import SamplerContract

SIZES = {"large": 60, "middle": 25, "small": 10, "pair": 2, "one": 1, "other": 1}
LABELS = tuple(label for label, size in SIZES.items() for _ in range(size))
N = len(LABELS)


def sampler(seed: int = 0, labels: tuple[str, ...] | None = LABELS) -> Sample:
    return Sample(Design(items=tuple(map(str, range(N))), categories=labels), seed=seed)


class TestSampleOfStrata(SamplerContract):
    n_items = 7

    def design(self, n_items: int | None = None) -> Design:
        n = n_items or self.n_items
        labels = tuple("a" if i % 3 else "b" for i in range(n))
        return Design(items=tuple(map(str, range(n))), categories=labels)

    def make(self, design: Design, seed: int) -> Sampler:
        return Sample(design, seed=seed)


def test_it_needs_no_first_readings() -> None:
    one = sampler()
    assert (one.minimum_readings, one.fixed_repeats, one.allocation) == (1, 0, Allocation.FIXED)
    assert "warmup" not in one.config


@pytest.mark.parametrize("seed", range(20))
def test_every_prefix_holds_each_stratum_within_one_of_its_share(seed: int) -> None:
    counts: Counter[str] = Counter()
    for n, item in enumerate(first_items(sampler(seed), N), start=1):
        counts[LABELS[item]] += 1
        # the last one asked is at the share that all strata have reached
        for label, size in SIZES.items():
            assert abs(counts[label] - size * n / N) < 1.0 + len(SIZES) * size / N
    assert counts == SIZES


def test_every_item_is_as_likely_in_the_sample_as_any_other() -> None:
    runs, n = replications(150, 400), 20
    seen = np.zeros(N)
    design = Design(items=tuple(map(str, range(N))), categories=LABELS)
    for seed in range(runs):
        seen[first_items(Sample(design, seed=seed), n)] += 1
    assert seen.sum() == runs * n
    assert chisquare(seen).pvalue > 0.001
    # where two strata hold one item each, these are drawn as often as the others too
    assert seen[-2:] / runs == pytest.approx(n / N, abs=4 * np.sqrt(n / N / runs))


def test_all_items_are_asked_once_before_any_is_asked_again() -> None:
    items = [request.cell for request in Asking(sampler()).ask(2 * N + 30)]
    assert {cell.item for cell in items[:N]} == set(range(N))
    assert [cell.item for cell in items[N : 2 * N]] == [cell.item for cell in items[:N]]
    assert {cell.epoch for cell in items[2 * N :]} == {2}


def test_an_item_that_fails_is_asked_again_and_then_replaced_by_one_of_its_stratum() -> None:
    one = Asking(sampler())
    (first,) = one.ask(1)
    one.tell([Reading(first, None)])
    asked, read = [first.cell.item], Counter[str]()
    while read.total() < 19:
        (request,) = one.ask(1)
        asked.append(item := request.cell.item)
        one.tell([Reading(request, None if item == asked[0] else 1.0)])
        read[LABELS[item]] += item != asked[0]
    assert asked[:3] == asked[:1] * 3
    assert [cell.item for cell in one.closed] == asked[:1]
    assert abs(read["large"] - 19 * 60 / N) < 2
    assert abs(read["middle"] - 19 * 25 / N) < 2


def test_a_stratum_that_always_fails_does_not_eat_up_the_budget() -> None:
    one = Asking(sampler())
    calls: Counter[str] = Counter()
    for _ in range(60):
        (request,) = one.ask(1)
        label = LABELS[request.cell.item]
        calls[label] += 1
        one.tell([Reading(request, None if label == "middle" else 1.0)])
    # five calls each and a few more as long as little is known of the others: 25 of 99 items are of this kind
    assert calls["middle"] <= 60 * 125 / (125 + 74) + 3


def test_a_reading_that_fails_in_half_of_the_items_is_replaced() -> None:
    one = Asking(sampler(labels=None))
    read, closed = [0], [0]
    for _ in range(160):
        (request,) = one.ask(1)
        fails = request.cell.item % 4 == 0
        one.tell([Reading(request, None if fails else 1.0)])
        read.append(read[-1] + (not fails))
        closed.append(len(one.closed))
    # as long as few answers are known an item that fails may take a dozen calls, and afterwards three
    last = 160 - 60
    assert 60 - 5 <= read[160] - read[last] + 3 * (closed[160] - closed[last]) <= 60 + 5
    assert read[160] > 50


def test_a_killed_run_goes_on_in_the_same_order_and_only_with_the_same_strata(tmp_path: Path) -> None:
    whole = [request.cell for request in Asking(sampler(3)).ask(40)]
    where = Address(path=tmp_path / "book.db")
    with closing(Database.create(where, ALONE, {"version": "1"})) as db:
        one = Book(sampler(3), Budget(40), db, known_as="a")
        for _ in range(25):
            one.trade([Reading(request, 0.5) for request in one.trade((), 1)], 0)
        one.close()
    with closing(Database.open(where, ALONE)) as db:
        again = Book(sampler(3), Budget(40), db, known_as="a")
        assert [*whole[:25], *(request.cell for request in again.trade((), 15))] == whole
        again.close()
    other = sampler(3, ("other", *LABELS[1:]))
    with closing(Database.open(where, ALONE)) as db, pytest.raises(StoreError, match="strata"):
        Book(other, Budget(40), db, known_as="a")


def test_the_second_readings_keep_to_the_items_that_score() -> None:
    one = Asking(sampler(labels=None))
    for _ in range(N + 40):
        (request,) = one.ask(1)
        one.tell([Reading(request, None if request.cell == Cell(item=0) else 1.0)])
    assert max(one.counts()) <= 2


def test_a_budget_ends_at_the_first_item_that_it_cannot_pay() -> None:
    """Else those that cost little would be likelier to be read."""
    order = first_items(sampler(3), N)
    costs = [1.0 if item % 2 else 7.0 for item in range(N)]
    found = set()
    for budget in range(100, 130):
        book = Book(sampler(3), Budget(budget), most=costs)
        read = []
        while requests := book.trade((), 3):
            read += [request.cell.item for request in requests]
            book.trade([Reading(request, 0.0, costs[request.cell.item]) for request in requests], 0)
        assert read == order[: len(read)]
        assert budget - 7.0 <= book.spent <= budget
        found.add(budget - book.spent)
    assert max(found) > 0.0  # a cheap one would have fitted
    assert min(found) == 0.0


def test_once_means_that_nothing_is_asked_again_but_what_failed() -> None:
    one = Asking(Sample(Design(items=tuple(map(str, range(5)))), once=True))
    assert one.sampler.config["once"] is True
    assert "once" not in sampler().config
    first, *rest = one.ask(9)
    assert len(rest) == 4
    one.tell([Reading(request, 1.0) for request in rest])
    assert one.ask(9) == ()  # what is under way may fail
    assert one.stop_reason is None
    one.tell([Reading(first, None)])
    (again,) = one.ask(9)
    assert again.cell.item == first.cell.item
    one.tell([Reading(again, 1.0)])
    assert one.ask(9) == ()
    assert one.stop_reason == "every item that can be scored was read once"
    lost = Asking(Sample(Design.of_items(2), once=True))
    while asked := lost.ask(9):
        lost.tell([Reading(request, None) for request in asked])
    assert lost.stop_reason == "every item closed after repeated failures"


class TestSampleOnce(TestSampleOfStrata):
    def make(self, design: Design, seed: int) -> Sampler:
        return Sample(design, seed=seed, once=True)
