"""Simulated benchmarks and samplers for the claims; readings as (item, epoch, value)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from evalbudget.repeats.estimates import ItemReadings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class World:
    mean: Floats
    draw: Callable[[int], Floats]  # n -> scores of shape (n_items, n)


def bernoulli(p: Floats, rng: np.random.Generator) -> World:
    return World(p, lambda n: (rng.random((p.size, n)) < p[:, None]).astype(float))


def ratings(K: int, rng: np.random.Generator) -> World:
    """0..4 ratings: rounded, clipped normals with gamma distributed spread."""
    return categorical(
        np.stack(
            [_rounded(m, s) for m, s in zip(rng.uniform(0.3, 3.7, K), rng.gamma(2, 0.25, K), strict=True)]
        ),
        rng,
    )


def mostly_top(K: int, rng: np.random.Generator) -> World:
    """0..4 ratings, nearly always 4, otherwise anything."""
    p = rng.beta(8, 0.7, K)
    return categorical(np.stack([np.append(np.full(4, (1 - q) / 4), q) for q in p]), rng)


def categorical(share: Floats, rng: np.random.Generator) -> World:
    steps = share.cumsum(axis=1)[:, None, :-1]

    def draw(n: int) -> Floats:
        above = rng.random((len(share), n))[:, :, None] > steps
        return np.asarray(np.count_nonzero(above, axis=2), dtype=np.float64)

    return World(share @ np.arange(share.shape[1]), draw)


def _rounded(mean: float, sd: float) -> Floats:
    edges = norm.cdf((np.array([0.5, 1.5, 2.5, 3.5]) - mean) / sd)
    return np.asarray(np.diff(np.concatenate([[0.0], edges, [1.0]])), dtype=np.float64)


def of(rows: Sequence[Sequence[float]], **options: Any) -> ItemReadings:
    """Readings whose scores are these, item by item."""
    item = [i for i, row in enumerate(rows) for _ in row]
    epoch = [e for row in rows for e in range(len(row))]
    return ItemReadings.of(item, epoch, [v for row in rows for v in row], n_items=len(rows), **options)


def take(x: Floats, counts: Ints) -> ItemReadings:
    """The first counts[i] scores of each item."""
    item, epoch = np.nonzero(np.arange(x.shape[1]) < counts[:, None])
    return ItemReadings.of(item, epoch, x[item, epoch], n_items=len(x))


def uniform(world: World, n: int) -> ItemReadings:
    return take(world.draw(n), np.full(world.mean.size, n))


def adaptive(world: World, n: int, warmup: int = 3) -> ItemReadings:
    """Largest shrunk standard error next, 5% of the items at a time; n readings per item on average."""
    K = world.mean.size
    x = world.draw(8 * n)
    total, squares, rows = x.cumsum(axis=1), (x * x).cumsum(axis=1), np.arange(K)
    counts = np.full(K, warmup)
    pool = float(x[:, :warmup].var(axis=1, ddof=1).mean())
    while counts.sum() < n * K:
        s = total[rows, counts - 1]
        ss = np.maximum(squares[rows, counts - 1] - s * s / counts, 0)
        v = (4 * pool + ss) / (3 + counts)
        urgency = np.where(counts < x.shape[1], np.sqrt(v / counts) + np.sqrt(pool * np.log(K)) / counts, -1)
        counts[np.argsort(-urgency, kind="stable")[: max(1, K // 20)]] += 1
    return take(x, counts)


def phased(world: World, n: int) -> ItemReadings:
    """In three phases: the items that vary more in earlier ones get more readings in each."""
    K = world.mean.size
    x = world.draw(8 * n)
    counts, phase = np.full(K, 2), np.zeros(x.shape)
    for number, size in enumerate(((n - 2) * K // 2, (n - 2) * K - (n - 2) * K // 2), start=1):
        read = np.arange(x.shape[1]) < counts[:, None]
        mean = (x * read).sum(axis=1) / counts
        v = (((x - mean[:, None]) ** 2) * read).sum(axis=1) / (counts - 1)
        v = (v + v.mean()) / max(float((v + v.mean()).sum()), 1e-12)
        more = 1 + np.floor(v * max(size - K, 0)).astype(int)
        more[np.argsort(-v, kind="stable")[: max(size - more.sum(), 0)]] += (
            1  # phases have the size they have
        )
        after = np.minimum(counts + more, x.shape[1])
        phase[(np.arange(x.shape[1]) >= counts[:, None]) & (np.arange(x.shape[1]) < after[:, None])] = number
        counts = after
    item, epoch = np.nonzero(np.arange(x.shape[1]) < counts[:, None])
    return ItemReadings.of(item, epoch, x[item, epoch], n_items=K, phase=phase[item, epoch])
