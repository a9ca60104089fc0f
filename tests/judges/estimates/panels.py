"""Simulated panels with known components."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.judges.estimates import JudgeScores
from evalbudget.judges.schedules import Cyclic, JudgeSchedule

Floats = NDArray[np.float64]
NAMES = ("a", "b", "c", "d", "e")


@dataclass(frozen=True)
class Panel:
    item: float = 1.0
    generation: float = 0.3
    interaction: float = 0.0
    residual: float = 0.5
    gamma: tuple[float, ...] = (-1.0, -0.4, 0.1, 0.5, 0.8)

    def table(self, n: int, m: int, rng: np.random.Generator) -> Floats:
        """Scores (items, judges, generations) with mean 0."""
        K = len(self.gamma)
        return np.asarray(
            rng.normal(0, np.sqrt(self.item), (n, 1, 1))
            + rng.normal(0, np.sqrt(self.generation), (n, 1, m))
            + np.array(self.gamma)[None, :, None]
            + rng.normal(0, np.sqrt(self.interaction), (n, K, 1))
            + rng.normal(0, np.sqrt(self.residual), (n, K, m)),
            dtype=np.float64,
        )


def scored(table: Floats, schedule: JudgeSchedule) -> JudgeScores:
    """What the schedule would have bought."""
    a = schedule.assign()
    return JudgeScores.of(
        a.item, a.epoch, a.judge, table[a.item, a.judge, a.epoch], judges=schedule.judges, n_items=len(table)
    )


def items(n: int) -> list[str]:
    return [str(i) for i in range(n)]


def line(K: int) -> tuple[float, ...]:
    """Deviations of K judges, from -.8 to .8."""
    return tuple(np.linspace(-0.8, 0.8, K).tolist())


def thin(world: Panel, n: int, calls: int, rng: np.random.Generator) -> tuple[JudgeScores, Floats]:
    """Cyclic, the last epoch on items at random; and the gamma of the judges that scored."""
    K, m = len(world.gamma), -(-calls // n)
    judges = [str(j) for j in range(K)]
    s = scored(world.table(n, m, rng), Cyclic(items(n), judges, epochs=m, seed=int(rng.integers(2**31))))
    last = s.epoch == m - 1
    s = s.where(~last | (rng.permutation(n)[s.item] < calls - n * (m - 1)))
    return s, np.array(world.gamma)[s.counts > 0]
