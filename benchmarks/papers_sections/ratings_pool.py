"""Stand-ins for the ROBIN-HOOD paper's ratings: pools of 1,016 items with 30 stored ratings of 0 to 4 each.

The paper's data (30 ratings of each of 1,016 prompt-response pairs by one judge and attribute) are not
public. What is kept of them is their shape: a query draws one of an item's 30 ratings with replacement, the
truth is their mean, and ROBIN is told their variance; so nobody dissents with a probability below one
thirtieth. The constants of a :class:`World` were chosen by hand so that uniform, ROBIN-HOOD and ROBIN come
near the published worst-item errors on average over pools: the largest error of one pool hangs on its few
worst items.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.backtest import RecordedScores
from evalbudget.repeats.backtest._pool import Pool, pools_of

ITEMS, STORED = 1016, 30
_TOP = 4
_DISSENTERS = (0.4, 0.4, 0.2)
"""How often 1, 2 or 3 of an item's ratings dissent."""


@dataclass(frozen=True)
class World:
    """How a pool's items are made.

    Attributes:
        name: of the published row it stands for.
        unanimous: share of the items whose ratings are all equal.
        dissenting: share with one to three dissenting ratings.
        off: how often a dissenting rating is 1, 2, ... levels off.
        two_peaked: share rated at two levels that are two apart, the lower one by 8 to 22 of the 30.
        spread: median standard deviation of the rest, normals with centres from 0 to 4.2, rounded.
        log_spread: standard deviation of its logarithm.
    """

    name: str
    unanimous: float
    dissenting: float
    off: tuple[float, ...]
    two_peaked: float
    spread: float
    log_spread: float


GPT_HELPFULNESS = World("GPT helpfulness", 0.30, 0.15, (0.55, 0.40, 0.05), 0.02, 0.55, 0.40)
MEAN_OF_ROWS = World("mean of the rows", 0.20, 0.28, (0.6, 0.35, 0.05), 0.02, 0.66, 0.42)


def ratings_pool(world: World = GPT_HELPFULNESS, n_items: int = ITEMS, seed: int = 0) -> Pool:
    """One pool of the world; another seed is another set of items."""
    rng = np.random.default_rng(seed)
    unanimous, dissenting, two_peaked = (
        round(share * n_items) for share in (world.unanimous, world.dissenting, world.two_peaked)
    )
    ratings = np.empty((n_items, STORED))
    for i, row in enumerate(ratings):
        if i < unanimous:
            row[:] = rng.integers(_TOP + 1)
        elif i < unanimous + dissenting:
            _dissent(row, world.off, rng)
        elif i < unanimous + dissenting + two_peaked:
            row[:] = low = rng.integers(_TOP - 1)
            row[: rng.integers(8, 23)] = low + 2
        else:
            spread = world.spread * np.exp(world.log_spread * rng.standard_normal())
            row[:] = np.clip(np.rint(rng.normal(rng.uniform(0.0, 4.2), spread, STORED)), 0, _TOP)
    return pool_of_stored(world.name, ratings)


def pool_of_stored(name: str, ratings: NDArray[np.floating]) -> Pool:
    """A pool of stored ratings, shape (n_items, n_ratings), nan where one is missing."""
    items = tuple(f"item {i}" for i in range(len(ratings)))
    table = ratings[None, :, None, :].astype(np.float32)
    recorded = RecordedScores(table, (name,), items, ("rater",))
    return pools_of((recorded,), model=None, rater=None, min_repeats=2)[0]


def _dissent(row: NDArray[np.float64], off: tuple[float, ...], rng: np.random.Generator) -> None:
    """All ratings at one level, and one to three of them some levels off to a side where there is room."""
    level = int(rng.integers(_TOP + 1))
    dissenters = 1 + int(rng.choice(len(_DISSENTERS), p=_DISSENTERS))
    step = 1 + int(rng.choice(len(off), p=off))
    step = min(step, max(level, _TOP - level))
    sides = [side for side in (-1, 1) if 0 <= level + side * step <= _TOP]
    row[:] = level
    row[:dissenters] = level + step * sides[int(rng.integers(len(sides)))]
