"""What one run's readings say about items whose true scores are known, and what to expect of other runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget import Allocation, Design
from evalbudget.cells import CAME, Cells, Planned
from evalbudget.errors import SamplerError
from evalbudget.repeats._config import RepeatConfig
from evalbudget.repeats.estimates import ItemReadings, eb_wilson
from evalbudget.repeats.samplers import RepeatSampler

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
        chooser = RepeatConfig(calls, sampler, seed=seed).make_sampler(Design.of_items(sd.size), budget=calls)
        readings = _simulated(chooser, np.random.default_rng(seed).standard_normal(calls), sd)
        worst.append(float(np.abs(readings.moments.mean).max()))  # every true score is 0
        mean.append(abs(float(readings.item_means.mean())))
    return float(np.mean(worst)), float(np.mean(mean))


def _simulated(sampler: RepeatSampler, draws: NDArray[np.float64], sd: NDArray[np.float64]) -> ItemReadings:
    """What a run brings whose n-th call misses the truth by the n-th draw; each round comes back whole."""
    rounds: list[Planned] = []
    item = epoch = number = np.zeros(0, np.int64)
    while item.size < draws.size:
        zeros, ones = np.zeros_like(item), np.ones_like(item)
        cells = Cells(
            model=zeros,
            item=item,
            epoch=epoch,
            rater=zeros,
            round=number,
            phase=_phases(rounds)[number],
            state=np.full(item.size, CAME, np.int8),
            value=draws[: item.size] * sd[item],
            tries=ones,
            lost=zeros,
            cost=ones.astype(np.float64),
            withdrawn=np.array([-1]),
            given_up=frozenset(),
            n_rounds=len(rounds),
        )
        planned = sampler.decide(cells, rounds[-1].note if rounds else None)
        if not isinstance(planned, Planned):
            raise SamplerError(
                f"{sampler.name} ended a simulated run after {item.size} of {draws.size} calls"
            )
        more = planned.item[: draws.size - item.size]
        asked, epochs = np.bincount(item, minlength=sd.size).tolist(), []
        for i in more.tolist():
            epochs.append(asked[i])
            asked[i] += 1
        item, epoch = np.append(item, more), np.append(epoch, epochs).astype(np.int64)
        number = np.append(number, np.full(more.size, len(rounds)))
        rounds.append(planned)
    phase = _phases(rounds)[number] if sampler.allocation is Allocation.PHASED else None
    return ItemReadings.of(item, epoch, draws * sd[item], n_items=sd.size, phase=phase)


def _phases(rounds: list[Planned]) -> NDArray[np.int64]:
    return np.array([planned.phase for planned in rounds], np.int64)


def _uniform_calls(sd: NDArray[np.float64], error: float) -> int:
    """Calls n K with E max_i abs(sd_i Z_i) / sqrt(n) = error: the simulated ratings are normal."""
    draws = np.random.default_rng(0).standard_normal((20_000, sd.size))
    expected = float(np.abs(draws * sd).max(axis=1).mean())
    return round((expected / error) ** 2 * sd.size)
