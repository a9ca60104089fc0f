"""Calls that fail on some items more than on others are told, and those that fail at random are not."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import beta, binom
from tests.claims import binomial_claim, pinned, replications

from evalbudget import Cell, Design, Reading, Request
from evalbudget.hooks._plugins import plugins
from evalbudget.repeats import failing_items
from evalbudget.repeats._failing_items import log_e_value


def told(asked: list[int], failed: list[int], cost: float = 1.0) -> list[Reading]:
    """Readings of items that were asked so often, and of which so many calls failed."""
    cells = [(item, epoch) for item, n in enumerate(asked) for epoch in range(n)]
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
            if 0 < sum(failed) < asked.sum():
                mean += chance * np.exp(log_e_value(asked, np.array(failed)))
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
    assert np.exp(log_e_value(asked, failed)) == pytest.approx(np.mean(said) / common, rel=1e-3)


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


def played(sampler: str, rates: np.ndarray, seed: int) -> bool:
    """Whether a run of 10 calls per item tells of failures that depend on the item."""
    items = names(rates.size)
    budget = 10 * rates.size
    plans: dict[str, int] = {"budget": budget} if sampler == "auto" else {}
    chosen = plugins().sampler(sampler)(Design(items=items), seed=seed, **plans)
    rng = np.random.default_rng(seed)
    readings: list[Reading] = []
    for _ in range(budget):
        asked = chosen.ask()
        if not asked:
            break
        value = None if rng.random() < rates[asked[0].cell.item] else float(rng.integers(1, 6))
        readings.append(Reading(asked[0], value, error="no reply"))
        chosen.tell((readings[-1],))
    return failing_items(readings, items) is not None


@pytest.mark.claim
@pytest.mark.parametrize(
    ("sampler", "rate", "told_of"), [("auto", 0.05, 0), ("auto", 0.3, 0), ("uniform", 0.3, 0)]
)
def test_failures_at_random_are_told_of_in_a_twentieth_of_runs(
    sampler: str, rate: float, told_of: int
) -> None:
    n = replications(60, 1000)
    found = sum(played(sampler, np.full(30, rate), seed) for seed in range(n))
    pinned(found, told_of)
    binomial_claim(found, n, at_most=0.05)


@pytest.mark.claim
def test_failures_of_some_items_are_told_of() -> None:
    n = replications(20, 300)
    rates = np.where(np.arange(30) < 6, 0.5, 0.03)
    missed = sum(not played("auto", rates, seed) for seed in range(n))
    pinned(missed, 0)
    binomial_claim(missed, n, at_most=0.05)
