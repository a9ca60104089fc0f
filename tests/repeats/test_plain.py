"""What plain epochs would have needed, against counting, enumeration and simulated truth."""

from __future__ import annotations

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications
from tests.repeats.estimates.worlds import of

from evalbudget import Design
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats._objective import Objective
from evalbudget.repeats._plain_epochs import (
    PlainEpochs,
    median_worst_error,
    plain_epochs,
    plain_epochs_of_mean,
)
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.repeats.phases._spread import of_two_values
from evalbudget.repeats.samplers import Auto


def test_after_plain_epochs_it_is_their_number() -> None:
    rng = np.random.default_rng(1)
    found = plain_epochs(of([rng.normal(0, 1 + i % 3, 7) for i in range(12)]))
    assert found == PlainEpochs(per_item=7, readings=84, bought=84)
    assert found.as_good


def test_median_of_the_worst_error_against_simulation() -> None:
    variances = np.array([1.0, 4.0, 9.0])
    chance = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
    n = np.array([2.0, 5.0, 3.0])
    rng = np.random.default_rng(0)
    drawn = np.array([rng.choice(variances, 400_000, p=row) for row in chance])
    errors = np.abs(rng.normal(size=drawn.shape)) * np.sqrt(drawn / n[:, None])
    assert median_worst_error(variances, chance, n) == pytest.approx(np.median(errors.max(axis=0)), rel=0.005)


def test_median_of_one_items_error_is_that_of_a_normal() -> None:
    found = median_worst_error(np.array([4.0]), np.array([[1.0]]), np.array([16.0]))
    assert found == pytest.approx(0.6744897501960817 * 0.5)


def test_where_variances_are_all_but_known_it_is_what_they_give() -> None:
    """Two items of sd 2 asked 400 times, thirty of sd 0.5 asked 100 times."""
    rng = np.random.default_rng(4)
    values = [rng.normal(0, 2, 400) for _ in range(2)] + [rng.normal(0, 0.5, 100) for _ in range(30)]
    found = plain_epochs(of(values))
    assert found is not None
    variances, n = np.repeat([4.0, 0.25], [2, 30]), np.repeat([400.0, 100.0], [2, 30])
    assert found.per_item == pytest.approx(_true_epochs(variances, n), rel=0.1)
    assert found.readings == 32 * found.per_item
    assert found.bought == 3800
    assert not found.as_good


def test_one_epoch_too_many_by_rounding_is_still_as_good() -> None:
    assert PlainEpochs(per_item=9, readings=108, bought=105).as_good
    assert not PlainEpochs(per_item=10, readings=120, bought=105).as_good


def test_of_the_mean_it_follows_from_the_shares_of_readings() -> None:
    """Two readings of each of two items, then three of one and one of the other; phases count alike."""
    item, phase = [0] * 5 + [1] * 3, [0, 0, 1, 1, 1, 0, 0, 1]
    value = [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    found = plain_epochs_of_mean(
        ItemReadings.of(item, [0, 1, 2, 3, 4, 0, 1, 2], value, n_items=2, phase=phase)
    )
    spread = of_two_values(np.array([5, 3]), np.array([3, 2]))
    assert spread is not None
    squared = np.array([2 / 16 + 3 / 36, 2 / 16 + 1 / 4])
    epochs = spread.variance.sum() / (spread.variance @ squared)
    assert found == PlainEpochs(round(epochs), int(2 * epochs), 8, Objective.MEAN)
    assert found.as_good


def test_of_the_mean_of_equally_many_readings_it_is_their_number() -> None:
    passed = ItemReadings.of([0, 0, 1, 1], [0, 1, 0, 1], [0.0, 1.0, 1.0, 1.0], n_items=2, phase=[0] * 4)
    assert plain_epochs_of_mean(passed) == PlainEpochs(2, 4, 4, Objective.MEAN)
    assert plain_epochs_of_mean(passed.where(passed.item > 0)) is None


def test_two_percent_of_the_mean_are_no_gain() -> None:
    assert PlainEpochs(10, 1020, 1000, Objective.MEAN).as_good
    assert not PlainEpochs(10, 1021, 1000, Objective.MEAN).as_good


def test_where_nothing_varies_or_an_item_was_never_read_it_is_unknown() -> None:
    assert plain_epochs(of([np.ones(3), np.zeros(4)])) is None
    assert plain_epochs(of([[1.0, 2.0], []])) is None
    assert plain_epochs(of([[]] * 3)) is None


@pytest.mark.claim
def test_it_seldom_promises_much_more_than_is_true() -> None:
    """40 items, one in three noisy, 20 readings each on average by an empirical-Bayes Bernstein index."""
    worlds, over, ratios = replications(18, 600), 0, list[float]()
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
        true = _true_epochs(sd**2, n.astype(float))
        found = plain_epochs(of([draws[i, :k] for i, k in enumerate(n)]))
        assert found is not None
        ratios.append(found.per_item / true)
        over += int(ratios[-1] > 1.1)
    pinned(over, 0)
    assert 0.95 < np.median(ratios) < 1.1
    binomial_claim(over, worlds, at_most=0.1)


@pytest.mark.claim
def test_of_the_mean_it_promises_what_is_true() -> None:
    """100 items that pass with chances from Beta(.3, .3), 20 readings each on average."""
    ratios = []
    for world in range(replications(5, 200)):
        rng = np.random.default_rng(world)
        chance = rng.beta(0.3, 0.3, 100)
        book = ArrayBook(Auto(Design.of_items(100), seed=world, budget=2000))
        while book.n < 2000 and (asked := book.ask(2000 - book.n)) is not None:
            book.tell((rng.random(asked.item.size) < chance[asked.item]).astype(float))
        readings = book.bought()
        found, V = plain_epochs_of_mean(readings), chance * (1 - chance)
        assert found is not None
        true = V.sum() / (V @ np.bincount(readings.item, readings.shares**2))
        ratios.append(found.readings / 100 / true)
    assert 0.98 < np.mean(ratios) < 1.03


def _true_epochs(variances: np.ndarray, n: np.ndarray) -> float:
    """Where the true variances are known, by the median of the worst of simulated errors."""
    z = np.abs(np.random.default_rng(99).normal(size=(20_000, n.size)))
    once, these = (np.median((z * np.sqrt(variances / k)).max(axis=1)) for k in (1.0, n))
    return float((once / these) ** 2)
