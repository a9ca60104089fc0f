"""What one log's readings say about items whose true scores are known, and what to expect of other runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from inspect_ai.log import read_eval_log
from numpy.typing import NDArray

from evalbudget import Design, Reading
from evalbudget.estimators import ItemReadings, eb_wilson
from evalbudget.plugins import get_sampler

_RUNS = 100


@dataclass(frozen=True, slots=True)
class Outcome:
    """One column of the demo's table.

    Attributes:
        sampler: that chose the repeats.
        calls: judge calls.
        items: how many.
        worst_item_error: max_i abs(estimate_i - true_i) of this run.
        expected_worst_item_error: its mean over 100 simulated runs with the same judge's variances.
        widest_half_width: of the items' 95% intervals.
        items_covered: items whose interval holds the true score.
        uniform_calls_for_same_error: calls at which equal repeats expect the same worst-item error.
    """

    sampler: str
    calls: int
    items: int
    worst_item_error: float
    expected_worst_item_error: float
    widest_half_width: float
    items_covered: int
    uniform_calls_for_same_error: int


def outcome_of(sampler: str, logs: Path) -> Outcome:
    """Read the one log in the folder and compare it with the truth in its samples' metadata."""
    (file,) = sorted(logs.rglob("*.eval"))[-1:]
    samples = read_eval_log(str(file)).samples or []
    ids = sorted({str(s.id) for s in samples})
    index = {item: i for i, item in enumerate(ids)}
    truth, sd = np.zeros(len(ids)), np.zeros(len(ids))
    columns: tuple[list[int], list[int], list[float]] = ([], [], [])
    for sample in samples:
        item = index[str(sample.id)]
        truth[item] = sample.metadata["simulated_mean"]
        sd[item] = sample.metadata["simulated_sd"]
        for score in (sample.scores or {}).values():
            columns[0].append(item)
            columns[1].append(sample.epoch - 1)
            columns[2].append(score.as_float())
    estimates = eb_wilson(ItemReadings.of(*columns, n_items=len(ids)))
    bounds = estimates.confidence_intervals(0.95)
    expected = _expected_error(sampler, sd, len(samples))
    return Outcome(
        sampler=sampler,
        calls=len(samples),
        items=len(ids),
        worst_item_error=float(np.abs(estimates.value - truth).max()),
        expected_worst_item_error=expected,
        widest_half_width=float(bounds.width.max() / 2),
        items_covered=int(((bounds.low <= truth) & (truth <= bounds.high)).sum()),
        uniform_calls_for_same_error=_uniform_calls(sd, expected),
    )


def _expected_error(sampler: str, sd: NDArray[np.float64], calls: int) -> float:
    errors = []
    for seed in range(_RUNS):
        rng = np.random.default_rng(seed)
        chooser = get_sampler(sampler)(Design.of_items(sd.size), seed=seed)
        total, count = np.zeros(sd.size), np.zeros(sd.size)
        for value in rng.standard_normal(calls).tolist():
            (request,) = chooser.ask(1)
            item = request.cell.item
            total[item] += value * sd[item]
            count[item] += 1
            chooser.tell([Reading(request, value * float(sd[item]))])
        errors.append(float(np.abs(total / count).max()))
    return float(np.mean(errors))


def _uniform_calls(sd: NDArray[np.float64], error: float) -> int:
    """Calls n K with E max_i abs(sd_i Z_i) / sqrt(n) = error: the simulated ratings are normal."""
    draws = np.random.default_rng(0).standard_normal((20_000, sd.size))
    expected = float(np.abs(draws * sd).max(axis=1).mean())
    return round((expected / error) ** 2 * sd.size)
