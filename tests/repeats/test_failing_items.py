"""Calls that fail on some items more than on others are told, and those that fail at random are not."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import beta, binom
from tests.asking import Asking
from tests.claims import binomial_claim, pinned, replications, variant

from evalbudget import Cell, Design, Reading, Request
from evalbudget.hooks._plugins import plugins
from evalbudget.repeats import failing_items
from evalbudget.repeats._failing_items import log_e_value


def told(asked: list[int], failed: list[int], cost: float = 1.0) -> list[Reading]:
    """Readings of items that were asked so often, and of which so many calls failed."""
    cells = [(item, epoch) for item, n in enumerate(asked) for epoch in range(n)]
    cells = [cells[i] for i in np.random.default_rng(0).permutation(len(cells))]
    return [
        Reading(
            Request(number, Cell(0, item, epoch)), None if epoch < failed[item] else 1.0, cost, "no reply"
        )
        for number, (item, epoch) in enumerate(cells)
    ]


def names(n: int) -> list[str]:
    return [f"item-{i}" for i in range(n)]


def test_the_e_value_against_every_way_to_fail() -> None:
    # under any common rate its mean is at most 1; all outcomes of 2, 3 and 2 calls
    asked = np.array([2, 3, 2])
    for rate in (0.02, 0.1, 0.3, 0.5, 0.9):
        mean = 0.0
        for failed in product(*(range(n + 1) for n in asked)):
            chance = float(np.prod(binom.pmf(failed, asked, rate)))
            bad = np.random.default_rng(0).permutation(asked.sum()) < sum(failed)
            mean += chance * np.exp(log_e_value(asked, np.array(failed), bad))
        assert mean <= 1.0


def test_the_e_value_against_numbers_by_quadrature() -> None:
    asked, failed = np.array([4, 1, 6]), np.array([3, 0, 1])
    p = (np.arange(200_000) + 0.5) / 200_000

    def mixed(a: float, b: float) -> list[float]:
        weights = beta.pdf(p, a, b) / p.size
        return [
            float((p**x * (1 - p) ** (n - x) * weights).sum()) for n, x in zip(asked, failed, strict=True)
        ]

    said = []
    for rate in (0.01, 0.03, 0.1, 0.3, 0.6):
        for k in (0.5, 4.0):  # by hand: densities with a pole are no matter for quadrature
            own = [betaln(x + rate * k, n - x + (1 - rate) * k) for n, x in zip(asked, failed, strict=True)]
            said.append(float(np.exp(np.sum(own) - 3 * betaln(rate * k, (1 - rate) * k))))
        alike, anything = mixed(rate * 50, (1 - rate) * 50), mixed(1, 1)
        for few in (0.05, 0.2):
            each = [(1 - few) * one + few * any_ for one, any_ in zip(alike, anything, strict=True)]
            said.append(float(np.prod(each)))
    common = (4 / 11) ** 4 * (7 / 11) ** 7
    assert np.exp(log_e_value(asked, failed, np.arange(11) % 3 == 0)) == pytest.approx(
        np.mean(said) / common, rel=1e-3
    )


def test_the_items_are_named_that_fail_beyond_their_share() -> None:
    found = failing_items(told([10] * 20 + [30], [9, 8] + [0] * 18 + [2]), names(21))
    assert found is not None
    assert (found.names, found.failed, found.calls) == (("item-0", "item-1"), (9, 8), (10, 10))
    assert (found.items, found.of) == (3, 21)
    assert str(found) == (
        "calls fail on some items more than on others (on 3 of 21; most on item-0 (9 of 10), item-1 (8 of "
        "10)), so what fails may score differently from what is read"
    )


@pytest.mark.parametrize(
    ("asked", "failed"),
    [([5, 5], [0, 0]), ([5, 5], [1, 0]), ([5, 5], [5, 5]), ([0, 0], [0, 0]), ([5] * 20, [1] * 20)],
)
def test_nothing_is_told_of_what_may_be_chance(asked: list[int], failed: list[int]) -> None:
    assert failing_items(told(asked, failed), names(len(asked))) is None


def test_what_cost_nothing_was_not_asked() -> None:
    assert failing_items(told([10] * 10, [10] + [0] * 9, cost=0.0), names(10)) is None


def test_a_block_of_readings_may_fail_more_than_another_and_a_server_may_be_down() -> None:
    # 50 readings of which 20 failed apart, then 50 of which 8 in a row did, then 7 in a row and one more
    bad = np.concatenate(
        [np.tile([True, True, False, False, False], 10), np.arange(50) < 8, [True] * 7 + [False, True]]
    )
    asked, failed = np.array([59, 50]), np.array([36, 0])
    whole = log_e_value(asked, failed, np.tile([True, False], 15))  # in one block, nothing down
    said = whole + 30 * np.log(0.5)
    common = 20 * np.log(0.4) + 30 * np.log(0.6) + 8 * np.log(8 / 9) + np.log(1 / 9)
    assert log_e_value(asked, failed, bad) == pytest.approx(said - common)


def played(sampler: str, rates: np.ndarray, seed: int, outages: Sequence[range] = ()) -> bool:
    """Whether a run of 10 calls per item tells of failures that depend on the item."""
    items = names(rates.size)
    budget = 10 * rates.size
    plans: dict[str, int] = {"budget": budget} if sampler == "auto" else {}
    cls: Any = plugins().sampler(sampler)
    chosen = Asking(cls(Design(items=items), seed=seed, **plans))
    rng = np.random.default_rng(seed)
    readings: list[Reading] = []
    for number in range(budget):
        asked = chosen.ask()
        if not asked:
            break
        down = any(number in outage for outage in outages)
        value = None if down or rng.random() < rates[asked[0].cell.item] else float(rng.integers(1, 6))
        readings.append(Reading(asked[0], value, error="no reply"))
        chosen.tell((readings[-1],))
    return failing_items(readings, items) is not None


@pytest.mark.claim
@pytest.mark.parametrize(
    ("sampler", "rate", "told_of"), [variant("auto", 0.05, 0), ("auto", 0.3, 0), variant("uniform", 0.3, 0)]
)
def test_failures_at_random_are_told_of_in_a_twentieth_of_runs(
    sampler: str, rate: float, told_of: int
) -> None:
    n = replications(18, 1000)
    found = sum(played(sampler, np.full(30, rate), seed) for seed in range(n))
    pinned(found, told_of)
    binomial_claim(found, n, at_most=0.05)


@pytest.mark.claim
@pytest.mark.parametrize(
    "outages",
    [
        variant([range(110, 140)]),
        variant([range(50, 150)]),
        [range(20, 40), range(210, 230)],
        [range(290, 300)],
    ],
)
def test_outages_are_not_told_of(outages: list[range]) -> None:
    n = replications(6, 300)
    found = sum(played("auto", np.full(30, 0.02), seed, outages) for seed in range(n))
    pinned(found, 0)
    binomial_claim(found, n, at_most=0.05)


@pytest.mark.claim
def test_failures_of_some_items_are_told_of() -> None:
    n = replications(6, 300)
    rates = np.where(np.arange(30) < 6, 0.5, 0.03)
    missed = sum(not played("auto", rates, seed) for seed in range(n))
    pinned(missed, 0)
    binomial_claim(missed, n, at_most=0.05)
