"""What a section hands back, and the simulated panels several of them share."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Target:
    """A figure that had to be reached, what was measured, and whether it was.

    ``within_noise`` says that what is missing is less than two runs of the same size differ by.
    """

    text: str
    measured: str
    reached: bool
    within_noise: bool = False


@dataclass(frozen=True)
class Table:
    """A further table of a section, under a title of its own."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Found:
    """One section: a table of finished text, and what it shows; more tables if one is not enough."""

    lead: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    targets: tuple[Target, ...] = ()
    notes: tuple[str, ...] = field(default=())
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class World:
    """Normal components; the panel's biases are fixed."""

    item: float
    generation: float
    interaction: float
    residual: float
    gamma: Floats

    def draw(self, n: int, m: int, rng: np.random.Generator) -> Floats:
        """Scores (items, judges, generations)."""
        K = self.gamma.size
        parts = (
            rng.normal(0, np.sqrt(self.item), (n, 1, 1)),
            rng.normal(0, np.sqrt(self.generation), (n, 1, m)),
            self.gamma[None, :, None],
            rng.normal(0, np.sqrt(self.interaction), (n, K, 1)),
            rng.normal(0, np.sqrt(self.residual), (n, K, m)),
        )
        return np.asarray(sum(parts), dtype=np.float64)


def biases(K: int, variance: float) -> Floats:
    """K deviations with sum zero and this mean square."""
    line = np.linspace(-1.0, 1.0, K)
    return np.asarray(line * np.sqrt(variance / (line**2).mean()), dtype=np.float64)


def names(K: int) -> tuple[str, ...]:
    return tuple(f"judge {j}" for j in range(K))
