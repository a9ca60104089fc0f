"""PP-LUCB's coverage table: any-time intervals of a mean, in three readings of the width."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits.policies._lucb import _psi
from judges_sections.found import Floats, Table

DELTAS = (0.01, 0.05, 0.1, 0.2)
PUBLISHED = (0.998, 0.988, 0.968, 0.902)
HORIZONS = (50, 100, 200, 500)
MEANS = (0.3, 0.5, 0.7)
READINGS = ("stated: n/4, delta/2", "delta for delta/2", "n times the empirical variance, delta/2")


@dataclass(frozen=True)
class Coverage:
    """Shares of sequences without any violation.

    Attributes:
        table: finished.
        stated: of Prop. 4.3's width to n = 500 at mean .5, by delta.
        closest: the reading whose shares at mean .5 and n = 500 are nearest to the published, and how far.
        spread: of the stated width over n and over means, at the delta where it is largest.
    """

    table: Table
    stated: tuple[float, ...]
    closest: tuple[str, float]
    spread: tuple[float, float]


def coverage(sequences: int) -> Coverage:
    """Share of Bernoulli sequences whose mean stays inside at every n up to a horizon."""
    held: dict[tuple[str, float, float], Floats] = {}
    for mean in MEANS:
        rng = np.random.default_rng([10, int(10 * mean)])
        drawn = (rng.random((sequences, HORIZONS[-1])) < mean).astype(np.float64)
        for delta in DELTAS:
            for reading, ok in _inside(drawn, mean, delta).items():
                never = np.logical_and.accumulate(ok, axis=1)
                held[reading, mean, delta] = never[:, np.array(HORIZONS) - 1].mean(axis=0)
    rows = []
    for reading in READINGS:
        for mean in MEANS:
            for place, horizon in enumerate(HORIZONS):
                if mean == 0.5 or horizon == HORIZONS[-1]:
                    shares = (f"{held[reading, mean, delta][place]:.4f}" for delta in DELTAS)
                    rows.append((reading, f"{mean:g}", str(horizon), *shares))
    rows.append(("published", "0.5", "50 to 500", *(f"{share:.3f}" for share in PUBLISHED)))
    off = {
        reading: max(
            abs(float(held[reading, 0.5, delta][-1]) - share)
            for delta, share in zip(DELTAS, PUBLISHED, strict=True)
        )
        for reading in READINGS
    }
    closest = min(off, key=off.__getitem__)
    stated = READINGS[0]
    over_n = max(float(np.ptp(held[stated, 0.5, delta])) for delta in DELTAS)
    over_means = max(float(np.ptp([held[stated, mean, delta][-1] for mean in MEANS])) for delta in DELTAS)
    return Coverage(
        Table(
            "Any-time coverage of a mean",
            ("width", "mean", "n up to", *(f"delta {delta:g}" for delta in DELTAS)),
            tuple(rows),
            (
                f"{sequences:,} Bernoulli sequences (the paper: 1,000), the same for all rows of a mean: "
                "share without any violation.",
            ),
        ),
        tuple(float(held[stated, 0.5, delta][-1]) for delta in DELTAS),
        (closest, off[closest]),
        (over_n, over_means),
    )


def _inside(drawn: Floats, mean: float, delta: float) -> dict[str, NDArray[np.bool_]]:
    """Whether the running mean is within each width of the true one, shape (sequences, n)."""
    n = np.arange(1, drawn.shape[1] + 1)
    running = np.cumsum(drawn, axis=1) / n
    off = np.abs(running - mean)
    variance = running * (1 - running)
    widths = (
        _width(n / 4, delta / 2) / n,
        _width(n / 4, delta) / n,
        _width(n * variance, delta / 2) / n,
    )
    return {reading: off <= width for reading, width in zip(READINGS, widths, strict=True)}


def _width(v: Floats, alpha: float) -> Floats:
    levels, place = np.unique(v, return_inverse=True)
    return np.array([_psi(level, alpha) for level in levels.tolist()])[place].reshape(v.shape)
