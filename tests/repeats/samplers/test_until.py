"""Samplers that end once every item is known: what was promised is kept, at a part of the price."""

from __future__ import annotations

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications

from evalbudget import Cell, Design, Reading
from evalbudget.errors import BudgetError, InvalidInputError, SamplerError
from evalbudget.repeats import RepeatConfig
from evalbudget.repeats.samplers import Auto, EBBernstein, RepeatSampler, Uniform
from evalbudget.repeats.samplers._goal import Goal
from evalbudget.statistics import betting_intervals
from evalbudget.until import Until, parse_until

BOUNDS = (0.0, 10.0)
SPREAD = np.array([0.2, 0.5, 1.0, 3.0, 0.1, 0.4])


def play(sampler: RepeatSampler, seed: int, most: int = 5000) -> dict[int, list[float]]:
    """Readings of each item until the sampler ends; at most so many."""
    rng = np.random.default_rng(seed)
    found: dict[int, list[float]] = {i: [] for i in range(SPREAD.size)}
    for _ in range(most):
        requests = sampler.ask(1)
        if not requests:
            return found
        (request,) = requests
        item = request.cell.item
        value = float(np.clip(5.0 + rng.normal(0.0, SPREAD[item]), *BOUNDS))
        found[item].append(value)
        sampler.tell([Reading(request, value)])
    return found


def stopping(kind: type[RepeatSampler], half_width: float = 1.5) -> RepeatSampler:
    sampler = kind(Design.of_items(SPREAD.size))
    sampler.stop_when_known(half_width, BOUNDS)
    return sampler


@pytest.mark.parametrize("kind", [Auto, EBBernstein, Uniform])
def test_it_ends_when_every_item_is_known_and_not_before(kind: type[RepeatSampler]) -> None:
    sampler = stopping(kind)
    found = play(sampler, 0)
    assert sampler.stop_reason == "every item that can be scored is known to ± 1.5"
    values, lengths = np.concatenate(list(found.values())), [len(each) for each in found.values()]
    width = betting_intervals(values, lengths, bounds=BOUNDS).width
    assert (width <= 3.05).all()  # those held out are in these intervals, too
    assert width.max() > 2.5
    assert sampler.ask(1) == ()


@pytest.mark.parametrize("kind", [Auto, EBBernstein])
def test_what_is_known_is_asked_no_more(kind: type[RepeatSampler]) -> None:
    found = play(stopping(kind), 3)
    for readings in found.values():
        width = [
            float(betting_intervals(readings[:n], [n], bounds=BOUNDS).width[0])
            for n in (len(readings), max(3, len(readings) - 3 - len(readings) // 16))
        ]
        assert width[1] > 2.6, (len(readings), width)  # a few readings before the last it was not


def test_items_that_vary_more_are_asked_more() -> None:
    auto, plain = play(stopping(Auto), 1), play(stopping(Uniform), 1)
    assert len(auto[3]) > 1.5 * len(auto[4])
    assert sum(map(len, auto.values())) < sum(map(len, plain.values()))


def test_without_a_goal_it_goes_on() -> None:
    sampler = Auto(Design.of_items(SPREAD.size))
    assert sum(map(len, play(sampler, 0, most=1200).values())) == 1200


def test_closed_items_are_not_waited_for() -> None:
    sampler = stopping(Uniform)
    rng = np.random.default_rng(2)
    for _ in range(2000):
        requests = sampler.ask(1)
        if not requests:
            break
        item = requests[0].cell.item
        value = None if item == 3 else float(5.0 + rng.normal(0.0, 0.2))
        sampler.tell([Reading(requests[0], value)])
    assert sampler.stop_reason == "every item that can be scored is known to ± 1.5"
    assert sampler.closed == (Cell(item=3),) or len(sampler.closed) == 1


def test_the_goal_is_in_the_configuration_and_set_first() -> None:
    sampler = stopping(Auto)
    assert sampler.options["until"] == (1.5, 0.0, 10.0)
    sampler.ask(1)
    with pytest.raises(SamplerError, match="say so first"):
        sampler.stop_when_known(1.0, BOUNDS)


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


def test_a_reading_counts_for_what_the_item_will_need_and_not_for_the_cap() -> None:
    def weights(**asked: str) -> list[float | None]:
        config = RepeatConfig.of(budget=9000, score_range="0..10", **asked)
        sampler = config.make_sampler(Design.of_items(SPREAD.size), budget=9000)
        found = []
        for _ in range(60):
            (request,) = sampler.ask(1)
            found.append(request.weight)
            sampler.tell([Reading(request, 5.0 + 0.1 * (request.id % 7))])
        return found

    def most(told: list[float | None]) -> float:
        return max(weight for weight in told[-20:] if weight is not None)

    assert most(weights(until="item±0.9")) > 5.0 * most(weights())
    assert weights(until="item±0.005") == weights()  # the cap comes first


def test_the_readings_an_item_will_need() -> None:
    goal = Goal(0.2, (0.0, 2.0), n_items=1)
    by_variance = (2.87 / 0.2) ** 2
    assert goal.expected(0, 0, 0.0) == pytest.approx(by_variance)
    assert goal.expected(0, 1, 0.0) == pytest.approx(by_variance)
    assert goal.expected(0, 4, 3.0) == pytest.approx(by_variance * (3.0 + 1.0) / 4)
    for epoch in range(12):
        goal.learn(0, epoch, float(epoch % 2))
    assert goal.newly_known() == []
    width = float(betting_intervals([0.0, 1.0] * 6, [12], bounds=(0.0, 2.0)).width[0])
    expected = (8 * by_variance * 4.0 / 24 + 24 * 12 * (width / 0.4) ** 2) / 32
    assert goal.expected(0, 24, 3.0) == pytest.approx(expected)


@pytest.mark.claim
def test_the_estimate_of_a_run_that_ends_early_is_unbiased_and_nearly_as_good_as_plain_epochs() -> None:
    R, K = replications(30, 1000), 10
    chance = np.random.default_rng(5).beta(2.0, 1.0, K)
    errors, calls = [], []
    for seed in range(R):
        rng = np.random.default_rng([77, seed])
        config = RepeatConfig.of(budget=10**6, until="item±0.3", score_range="0..1")
        sampler = config.make_sampler(Design.of_items(K), budget=10**6)
        left, mean, held = np.ones(K), np.zeros(K), np.zeros(K)
        while requests := sampler.ask(1):
            (request,) = requests
            item, value = request.cell.item, float(rng.random() < chance[request.cell.item])
            if request.weight is None:
                held[item] = value
            else:
                mean[item] += request.weight * value
                left[item] -= request.weight
            sampler.tell([Reading(request, value)])
        errors.append(float((mean + left * held - chance).mean()))
        calls.append(sampler.asked)
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
        ({"until": "item±0.5", "score_range": "0..10", "sampler": "uniform"}, "use --sampler auto, whose"),
    ):
        with pytest.raises(InvalidInputError, match=told):
            RepeatConfig.of(budget=100, **asked)
    with pytest.raises(BudgetError, match="no budget given"):
        RepeatConfig.of(until="item±0.5", score_range="0..10")


@pytest.mark.claim
def test_items_are_as_well_known_as_it_says() -> None:
    R = replications(30, 1000)
    missed = 0
    for seed in range(R):
        found = play(stopping(Auto), seed)
        values, lengths = np.concatenate(list(found.values())), [len(each) for each in found.values()]
        held = betting_intervals(values, lengths, bounds=BOUNDS)
        assert held.width.max() <= 3.2  # one held-out reading more than decided
        missed += int((~held.contains(np.full(SPREAD.size, 5.0))).sum())
    binomial_claim(missed, R * SPREAD.size, at_most=0.05)
    pinned(missed, 0)
