"""What one log's readings say about items whose true scores are known."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from inspect_ai.log import read_eval_log

from evalbudget.estimators import ItemReadings, eb_wilson

_DRAWS = 20_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """One row of the demo's table.

    Attributes:
        name: of the run.
        calls: judge calls.
        items: how many.
        worst_item_error: max_i abs(estimate_i - true_i).
        widest_half_width: of the items' 95% intervals.
        items_covered: items whose interval holds the true score.
        uniform_calls_for_same_error: calls at which the expected worst-item error of equal repeats is this
            run's.
    """

    name: str
    calls: int
    items: int
    worst_item_error: float
    widest_half_width: float
    items_covered: int
    uniform_calls_for_same_error: int


def outcome_of(name: str, logs: Path) -> Outcome:
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
    readings = ItemReadings.of(*columns, n_items=len(ids))
    estimates = eb_wilson(readings)
    bounds = estimates.confidence_intervals(0.95)
    worst = float(np.abs(estimates.value - truth).max())
    return Outcome(
        name=name,
        calls=len(samples),
        items=len(ids),
        worst_item_error=worst,
        widest_half_width=float(bounds.width.max() / 2),
        items_covered=int(((bounds.low <= truth) & (truth <= bounds.high)).sum()),
        uniform_calls_for_same_error=_uniform_calls(sd, worst),
    )


def _uniform_calls(sd: np.ndarray[tuple[int], np.dtype[np.float64]], error: float) -> int:
    """Calls n K with E max_i abs(sd_i Z_i) / sqrt(n) = error, by simulation: the ratings are normal."""
    draws = np.random.default_rng(0).standard_normal((_DRAWS, sd.size))
    expected = float(np.abs(draws * sd).max(axis=1).mean())
    return round((expected / error) ** 2 * sd.size)
