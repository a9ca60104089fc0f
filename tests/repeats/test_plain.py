"""What plain epochs would have needed, against counting, enumeration and simulated truth."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications
from tests.repeats.estimates.worlds import of

from evalbudget.repeats._plain_epochs import PlainEpochs, median_of_largest, plain_epochs


def test_after_plain_epochs_it_is_their_number() -> None:
    rng = np.random.default_rng(1)
    found = plain_epochs(of([rng.normal(0, 1 + i % 3, 7) for i in range(12)]))
    assert found == PlainEpochs(per_item=7, readings=84, bought=84)
    assert found.as_good


def test_median_of_the_largest_against_enumeration() -> None:
    variances = np.array([1.0, 4.0, 9.0])
    chance = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
    n = np.array([2.0, 5.0, 3.0])
    outcomes = []
    for which in itertools.product(range(3), repeat=3):
        p = np.prod([chance[i, k] for i, k in enumerate(which)])
        outcomes.append((max(variances[k] / n[i] for i, k in enumerate(which)), p))
    outcomes.sort()
    reached = np.cumsum([p for _, p in outcomes])
    median = outcomes[int(np.argmax(reached >= 0.5))][0]
    assert median_of_largest(variances, chance, n) == pytest.approx(median)


def test_where_variances_are_all_but_known_it_is_the_plain_ratio() -> None:
    """Two items of sd 2 asked 400 times, thirty of sd 0.5 asked 100 times: 4/400 against .25/100."""
    rng = np.random.default_rng(4)
    values = [rng.normal(0, 2, 400) for _ in range(2)] + [rng.normal(0, 0.5, 100) for _ in range(30)]
    found = plain_epochs(of(values))
    assert found is not None
    assert found.per_item == pytest.approx(400, rel=0.05)
    assert found.readings == 32 * found.per_item
    assert found.bought == 3800
    assert not found.as_good


def test_one_epoch_too_many_by_rounding_is_still_as_good() -> None:
    assert PlainEpochs(per_item=9, readings=108, bought=105).as_good
    assert not PlainEpochs(per_item=10, readings=120, bought=105).as_good


def test_where_nothing_varies_or_an_item_was_never_read_it_is_unknown() -> None:
    assert plain_epochs(of([np.ones(3), np.zeros(4)])) is None
    assert plain_epochs(of([[1.0, 2.0], []])) is None
    assert plain_epochs(of([[]] * 3)) is None


@pytest.mark.claim
def test_it_seldom_promises_much_more_than_is_true() -> None:
    """40 items, one in three noisy, 20 readings each on average by an empirical-Bayes Bernstein index."""
    worlds, over, ratios = replications(60, 600), 0, list[float]()
    sd = np.where(np.arange(40) % 3 == 0, 2.5, 0.5)
    for world in range(worlds):
        draws = np.random.default_rng(world).normal(0, sd[:, None], (40, 200))
        n = np.full(40, 4)
        first = draws[:, :4]
        total, squares = first.sum(axis=1), (first**2).sum(axis=1)
        pool = first.var(axis=1, ddof=1).mean()
        for _ in range(40 * 20 - 160):
            variance = (4 * pool + squares - total**2 / n) / (3 + n)
            index = np.sqrt(variance / n) + np.sqrt(np.log(40) * pool) / n
            worst = int(np.argmax(np.where(n < 200, index, 0.0)))
            value = draws[worst, n[worst]]
            total[worst] += value
            squares[worst] += value**2
            n[worst] += 1
        true = (sd**2).max() / (sd**2 / n).max()
        found = plain_epochs(of([draws[i, :k] for i, k in enumerate(n)]))
        assert found is not None
        ratios.append(found.per_item / true)
        over += int(ratios[-1] > 1.6)
    pinned(over, 3)
    assert 0.85 < np.median(ratios) < 1.3
    binomial_claim(over, worlds, at_most=0.1)
