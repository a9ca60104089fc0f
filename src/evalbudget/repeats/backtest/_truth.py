"""What one run's readings say about items whose true scores are known, and what to expect of other runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget import Design
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats._config import RepeatConfig
from evalbudget.repeats.estimates import ItemReadings, eb_wilson

_RUNS = 100


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of a sampler against the truth.

    Attributes:
        sampler: that chose the repeats.
        calls: judge calls.
        items: how many.
        worst_item_error: max_i abs(estimate_i - true_i) of this run.
        expected_worst_item_error: its mean over 100 simulated runs with the same judge's variances.
        estimate: of the benchmark mean.
        mean_error: abs(estimate - true benchmark mean) of this run.
        expected_mean_error: its mean over the same simulated runs.
        widest_half_width: of the items' 95% intervals.
        items_covered: items whose interval holds the true score.
        uniform_calls_for_same_error: calls at which equal repeats expect the same worst-item error.
    """

    sampler: str
    calls: int
    items: int
    worst_item_error: float
    expected_worst_item_error: float
    estimate: float
    mean_error: float
    expected_mean_error: float
    widest_half_width: float
    items_covered: int
    uniform_calls_for_same_error: int


def against_truth(
    sampler: str, readings: ItemReadings, *, truth: NDArray[np.float64], sd: NDArray[np.float64]
) -> Outcome:
    """Compare one run with the truth, and with other runs of its sampler on the same items.

    Args:
        sampler: registered name, of a sampler of repeats.
        readings: of a run in which no call failed.
        truth: true score of each item, shape (n_items,).
        sd: standard deviation of a single score of each item, shape (n_items,).
    """
    calls, mean = int(readings.value.size), float(readings.item_means.mean())
    estimates = eb_wilson(readings.without_phases())
    bounds = estimates.confidence_intervals(0.95)
    expected, expected_mean = _expected_errors(sampler, sd, calls)
    return Outcome(
        sampler=sampler,
        calls=calls,
        items=readings.n_items,
        worst_item_error=float(np.abs(estimates.value - truth).max()),
        expected_worst_item_error=expected,
        estimate=mean,
        mean_error=abs(mean - float(truth.mean())),
        expected_mean_error=expected_mean,
        widest_half_width=float(bounds.width.max() / 2),
        items_covered=int(((bounds.low <= truth) & (truth <= bounds.high)).sum()),
        uniform_calls_for_same_error=_uniform_calls(sd, expected),
    )


def _expected_errors(sampler: str, sd: NDArray[np.float64], calls: int) -> tuple[float, float]:
    """Mean error of the worst item, and of the benchmark mean, over simulated runs."""
    worst, mean = [], []
    for seed in range(_RUNS):
        rng = np.random.default_rng(seed)
        config = RepeatConfig(calls, sampler, seed=seed)
        chooser = config.make_sampler(Design.of_items(sd.size), budget=calls)
        draws, book = rng.standard_normal(calls), ArrayBook(chooser)
        while book.n < calls and (asked := book.ask(calls - book.n)) is not None:
            book.tell(draws[book.n - asked.item.size : book.n] * sd[asked.item])
        readings = book.bought()
        worst.append(float(np.abs(readings.moments.mean).max()))  # every true score is 0
        mean.append(abs(float(readings.item_means.mean())))
    return float(np.mean(worst)), float(np.mean(mean))


def _uniform_calls(sd: NDArray[np.float64], error: float) -> int:
    """Calls n K with E max_i abs(sd_i Z_i) / sqrt(n) = error: the simulated ratings are normal."""
    draws = np.random.default_rng(0).standard_normal((20_000, sd.size))
    expected = float(np.abs(draws * sd).max(axis=1).mean())
    return round((expected / error) ** 2 * sd.size)
