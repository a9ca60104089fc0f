"""Samplers that end once every item is known: what was promised is kept, at a part of the price."""

from __future__ import annotations

import numpy as np
import pytest
from tests.asking import Asking
from tests.claims import binomial_claim, pinned, replications

from evalbudget import Allocation, Cell, Design, Reading
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.repeats import RepeatConfig
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.estimates import ItemReadings, mean_over_fixed_items
from evalbudget.repeats.samplers import Auto, EBBernstein, RepeatSampler, Uniform
from evalbudget.statistics import betting_intervals
from evalbudget.until import Until, parse_until

BOUNDS = (0.0, 10.0)
SPREAD = np.array([0.2, 0.5, 1.0, 3.0, 0.1, 0.4])


def play(sampler: RepeatSampler, seed: int, most: int = 5000) -> dict[int, list[float]]:
    """Readings of each item until the sampler ends; at most so many."""
    return by_item(bought(sampler, seed, most).bought())


def bought(sampler: RepeatSampler, seed: int, most: int = 5000) -> ArrayBook:
    rng, book = np.random.default_rng(seed), ArrayBook(sampler)
    while book.n < most and (asked := book.ask(most - book.n)) is not None:
        book.tell(np.clip(5.0 + rng.normal(0.0, SPREAD[asked.item]), *BOUNDS))
    return book


def by_item(readings: ItemReadings) -> dict[int, list[float]]:
    return {i: readings.value[readings.item == i].tolist() for i in range(SPREAD.size)}


def stopping(kind: type[RepeatSampler], half_width: float = 1.5) -> RepeatSampler:
    sampler = kind(Design.of_items(SPREAD.size))
    sampler.stop_when_known(half_width, BOUNDS)
    return sampler


@pytest.mark.parametrize("kind", [Auto, EBBernstein, Uniform])
def test_it_ends_when_every_item_is_known_and_not_before(kind: type[RepeatSampler]) -> None:
    sampler = stopping(kind)
    book = bought(sampler, 0)
    found = by_item(book.bought())
    assert book.stop_reason == "every item that can be scored is known to ± 1.5"
    values, lengths = np.concatenate(list(found.values())), [len(each) for each in found.values()]
    width = betting_intervals(values, lengths, bounds=BOUNDS).width
    assert (width <= 3.0).all()
    assert width.max() > 2.2
    assert book.ask(1) is None


def test_what_is_known_is_asked_once_a_phase() -> None:
    book = bought(stopping(Auto), 3)
    readings = book.bought()
    known = 0
    for item in range(SPREAD.size):
        own, phase = readings.value[readings.item == item], readings.phase[readings.item == item]
        for number in np.unique(phase)[1:]:
            before = own[phase < number]
            if betting_intervals(before, [before.size], bounds=BOUNDS).width[0] <= 3.0:
                assert (phase == number).sum() == 1
                known += 1
    assert known


def test_items_that_vary_more_are_asked_more() -> None:
    auto, plain = play(stopping(Auto), 1), play(stopping(Uniform), 1)
    assert len(auto[3]) > 1.5 * len(auto[4])
    assert sum(map(len, auto.values())) < sum(map(len, plain.values()))


def test_without_a_goal_it_goes_on() -> None:
    sampler = Auto(Design.of_items(SPREAD.size))
    assert sum(map(len, play(sampler, 0, most=1200).values())) == 1200


def test_closed_items_are_not_waited_for() -> None:
    sampler = Asking(stopping(Uniform))
    rng = np.random.default_rng(2)
    while requests := sampler.ask(1):
        item = requests[0].cell.item
        value = None if item == 3 else float(5.0 + rng.normal(0.0, 0.2))
        sampler.tell([Reading(requests[0], value)])
    assert sampler.stop_reason == "every item that can be scored is known to ± 1.5"
    assert sampler.closed == (Cell(item=3),) or len(sampler.closed) == 1


def test_the_goal_is_in_the_configuration() -> None:
    assert stopping(Auto).options["until"] == (1.5, 0.0, 10.0)


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("±0.02", Until(0.02, False)),
        ("+-0.02", Until(0.02, False)),
        ("0.02", Until(0.02, False)),
        ("item±0.5", Until(0.5, True)),
        ("item+-.5", Until(0.5, True)),
        ("item 5e-1", Until(0.5, True)),
    ],
)
def test_what_until_says(text: str, until: Until) -> None:
    assert parse_until(text) == until
    assert parse_until(str(until)) == until


@pytest.mark.parametrize("text", ["", "±", "±0", "±-1", "items±1", "item", "nan", "±1%"])
def test_what_until_cannot_say(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"--until .*write a half-width above 0"):
        parse_until(text)


@pytest.mark.claim
def test_the_estimate_of_a_run_that_ends_early_is_unbiased_and_nearly_as_good_as_plain_epochs() -> None:
    R, K = replications(9, 1000), 10
    chance = np.random.default_rng(5).beta(2.0, 1.0, K)
    errors, calls = [], []
    for seed in range(R):
        rng = np.random.default_rng([77, seed])
        config = RepeatConfig.of(budget=10**6, until="item±0.3", score_range="0..1")
        sampler = config.make_sampler(Design.of_items(K), budget=10**6)
        book = ArrayBook(sampler)
        while (asked := book.ask(10**6)) is not None:
            book.tell((rng.random(asked.item.size) < chance[asked.item]).astype(float))
        found = mean_over_fixed_items(book.bought(), allocation=Allocation.PHASED)
        errors.append(found.value - float(chance.mean()))
        calls.append(book.n)
    plain = float(np.sqrt((chance * (1.0 - chance)).sum() / K / np.mean(calls)))
    assert abs(np.mean(errors)) < 3.0 * np.std(errors) / np.sqrt(R)
    assert np.std(errors) < 1.5 * plain
    binomial_claim(int((np.abs(errors) > 1.96 * 1.5 * plain).sum()), R, at_most=0.05)


def test_until_of_a_run() -> None:
    config = RepeatConfig.of(budget=100, until="item±0.5", score_range="0..10")
    assert config.make_sampler(Design.of_items(3)).options["until"] == (0.5, 0.0, 10.0)
    for asked, told in (
        ({"until": "item±0.5"}, "add for example --score-range 1..10"),
        ({"until": "±0.5", "score_range": "0..10"}, "not what items like them would score"),
        ({"until": "item±0.5", "score_range": "0..10", "sampler": "uniform"}, "use --sampler auto, or drop"),
    ):
        with pytest.raises(InvalidInputError, match=told):
            RepeatConfig.of(budget=100, **asked)
    with pytest.raises(BudgetError, match="no budget given"):
        RepeatConfig.of(until="item±0.5", score_range="0..10")


@pytest.mark.claim
def test_items_are_as_well_known_as_it_says() -> None:
    R = replications(9, 1000)
    missed = 0
    for seed in range(R):
        found = play(stopping(Auto), seed)
        values, lengths = np.concatenate(list(found.values())), [len(each) for each in found.values()]
        held = betting_intervals(values, lengths, bounds=BOUNDS)
        assert held.width.max() <= 3.0
        missed += int((~held.contains(np.full(SPREAD.size, 5.0))).sum())
    binomial_claim(missed, R * SPREAD.size, at_most=0.05)
    pinned(missed, 0)
