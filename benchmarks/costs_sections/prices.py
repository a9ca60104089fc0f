"""Made-up costs of repeats: who is dear, and whether a cost tells of the score."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from costs_sections.money import TWO_DECADES, Floats, Priced
from evalbudget.design import Cell
from evalbudget.repeats.backtest._pool import Draws, Pool

_AHEAD = 64  # draws of an item whose noise is made in one go
_PER_DRAW = 1.0  # standard deviation of ln(cost) from reading to reading
_FAILURES = 2.0  # a reading at the bottom of the scale costs e to the power of this as much as one at the top


@dataclass(frozen=True)
class Prices:
    """Costs of a pool's readings.

    Attributes:
        item: of each item, shape (n_items,).
        noise: standard deviation of ln(cost) from reading to reading.
        slope: how fast ln(cost) falls with the score, from the bottom to the top of the scale.
    """

    item: Floats
    noise: float = 0.0
    slope: float = 0.0

    def priced(self, pool: Pool, seed: int) -> tuple[Priced, float]:
        """Scores and costs of one replication, and what a reading of plain epochs is expected to cost."""
        draws = Draws(pool, seed)
        low, high = float(np.nanmin(pool.values)), float(np.nanmax(pool.values))
        luck: list[list[float]] = [[] for _ in pool.items]
        streams = [np.random.default_rng([seed, 17, item]) for item in range(len(pool.items))]

        def priced(cell: Cell) -> tuple[float, float]:
            item, epoch = cell.item, cell.epoch
            value = float(draws.of(np.array([item]), np.array([epoch]))[0])
            log = -self.slope * (value - low) / (high - low)
            if self.noise:
                while epoch >= len(luck[item]):
                    luck[item].extend(streams[item].standard_normal(_AHEAD).tolist())
                log += self.noise * luck[item][epoch]
            return value, float(self.item[item] * np.exp(log))

        tilt = np.array(
            [
                np.exp(-self.slope * (row[:n] - low) / (high - low)).mean()
                for row, n in zip(pool.values, pool.counts, strict=True)
            ]
        )
        return priced, float((self.item * tilt).mean() * np.exp(self.noise**2 / 2.0))


def spread(n_items: int, seed: int, along: Floats | None = None, share: float = 0.0) -> Floats:
    """Log-normal costs of items over two decades; ``share`` of ln(cost)'s deviation along the ranks given."""
    rng = np.random.default_rng([seed, 23])
    z = rng.standard_normal(n_items)
    if along is not None:
        rank = np.argsort(np.argsort(along + 1e-9 * rng.random(n_items)))
        normal = np.sort(rng.standard_normal(n_items))[rank]
        z = share * normal + np.sqrt(1.0 - share**2) * z
    return np.exp(TWO_DECADES * z)


Made = Callable[[Pool, int], Prices]

PRICES: Mapping[str, Made] = {
    "all equal": lambda pool, seed: Prices(np.full(len(pool.items), 0.7)),
    "per item, two decades": lambda pool, seed: Prices(spread(len(pool.items), seed)),
    "the same, noisy items dear": lambda pool, seed: Prices(
        spread(len(pool.items), seed, pool.variances, 0.8)
    ),
    "the same, noisy items cheap": lambda pool, seed: Prices(
        spread(len(pool.items), seed, -pool.variances, 0.8)
    ),
    "the same, and noise from reading to reading": lambda pool, seed: Prices(
        spread(len(pool.items), seed), noise=_PER_DRAW
    ),
    "the same, and low scores dear": lambda pool, seed: Prices(
        spread(len(pool.items), seed), noise=0.3, slope=_FAILURES
    ),
    "only noise from reading to reading": lambda pool, seed: Prices(
        np.ones(len(pool.items)), noise=TWO_DECADES
    ),
}
"""By name: costs of a pool in one replication."""
