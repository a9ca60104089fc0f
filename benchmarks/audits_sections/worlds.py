"""Simulated judges and humans: four systems, human scores in [0, 1], a judge with the faults of its world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from judges_sections.found import Floats

SYSTEMS = 4
SPREAD = 0.2
"""Standard deviation of human ratings, before they are clipped to [0, 1]."""
PAPER_BEST, PAPER_BIAS, PAPER_NOISE = 0.7, 0.1, 0.15
"""Section 6 of PP-LUCB's paper: the best mean, and the judge's bias and noise before clipping."""


@dataclass(frozen=True)
class World:
    """Every score there is.

    Attributes:
        judge: F, shape (items, systems).
        human: Y, shape (items, systems).
        segment: of each item, shape (items,).
    """

    judge: Floats
    human: Floats
    segment: NDArray[np.int64]

    @property
    def segments(self) -> tuple[int, ...] | None:
        """As settings want them."""
        return tuple(self.segment.tolist()) if self.segment.max() else None


def _means(gap: float) -> Floats:
    """The best at .7, the second ``gap`` below it, the others .1 and .2 below that."""
    return 0.7 - np.array([0.0, gap, gap + 0.1, gap + 0.2])


def _human(n: int, gap: float, rng: np.random.Generator) -> Floats:
    return np.clip(_means(gap) + SPREAD * rng.standard_normal((n, SYSTEMS)), 0.0, 1.0)


def _world(judge: Floats, human: Floats, segment: NDArray[np.int64] | None = None) -> World:
    plain = np.zeros(len(human), dtype=np.int64)
    return World(np.clip(judge, 0.0, 1.0), human, plain if segment is None else segment)


def paper(n: int, gap: float, rng: np.random.Generator) -> World:
    """Section 6 of PP-LUCB's paper: pass or fail, means .7 falling by the gap, judge + .1 + noise .15."""
    return _passes(n, gap, rng, np.full(SYSTEMS, PAPER_BIAS))


def paper_arm_bias(n: int, gap: float, rng: np.random.Generator) -> World:
    """The same, but the judge's bias turned round for the best system: what the paper is about."""
    return _passes(n, gap, rng, PAPER_BIAS * np.array([-1.0, 1.0, 1.0, 1.0]))


def paper_tied(n: int, systems: int, rng: np.random.Generator) -> World:
    """The paper's judge and passes, all systems equal."""
    return _judged_passes((rng.random((n, systems)) < PAPER_BEST).astype(np.float64), PAPER_BIAS, rng)


def paper_tied_arm_bias(n: int, systems: int, rng: np.random.Generator) -> World:
    """All systems equal, but the judge is as much too hard on the first as it is too kind to the others."""
    y = (rng.random((n, systems)) < PAPER_BEST).astype(np.float64)
    return _judged_passes(y, PAPER_BIAS * np.where(np.arange(systems) == 0, -1.0, 1.0), rng)


def _passes(n: int, gap: float, rng: np.random.Generator, bias: Floats) -> World:
    means = PAPER_BEST - gap * np.arange(SYSTEMS)
    return _judged_passes((rng.random((n, SYSTEMS)) < means).astype(np.float64), bias, rng)


def _judged_passes(y: Floats, bias: Floats | float, rng: np.random.Generator) -> World:
    return _world(y + bias + PAPER_NOISE * rng.standard_normal(y.shape), y)


def impossible(n: int, gap: float, rng: np.random.Generator) -> World:
    """Two systems that no judge tells apart: its scores are alike, humans say .2 + .8 F and .8 F."""
    f = (rng.random((n, 2)) < 0.5).astype(np.float64)
    return _world(f, 0.8 * f + np.array([0.2, 0.0]))


def graded(n: int, gap: float, rng: np.random.Generator) -> World:
    """Ratings in [0, 1]; a judge with the same bias of .05 everywhere and noise .08."""
    y = _human(n, gap, rng)
    return _world(y + 0.05 + 0.08 * rng.standard_normal(y.shape), y)


def arm_bias(n: int, gap: float, rng: np.random.Generator) -> World:
    """The judge is .1 too hard on the best system and .1 too kind to the second: alone it is misled."""
    y = _human(n, gap, rng)
    return _world(y + np.array([-0.1, 0.1, 0.05, 0.0]) + 0.1 * rng.standard_normal(y.shape), y)


def three_segments(n: int, gap: float, rng: np.random.Generator) -> World:
    """Bias -.15, 0 and .15 and noise .03, .1 and .2 in three segments."""
    y, s = _human(n, gap, rng), rng.integers(0, 3, n)
    bias, noise = np.array([-0.15, 0.0, 0.15])[s, None], np.array([0.03, 0.1, 0.2])[s, None]
    return _world(y + bias + noise * rng.standard_normal(y.shape), y, s)


def binary(n: int, gap: float, rng: np.random.Generator) -> World:
    """Human scores are 0 or 1, and the judge agrees in 80% of them."""
    y = (rng.random((n, SYSTEMS)) < _means(gap)).astype(np.float64)
    return _world(np.where(rng.random(y.shape) < 0.8, y, 1.0 - y), y)


def perfect(n: int, gap: float, rng: np.random.Generator) -> World:
    """The judge says what the human would."""
    y = _human(n, gap, rng)
    return _world(y.copy(), y)


def uninformative(n: int, gap: float, rng: np.random.Generator) -> World:
    """The judge's score is noise."""
    y = _human(n, gap, rng)
    return _world(rng.random(y.shape), y)


WORLDS: dict[str, Callable[[int, float, np.random.Generator], World]] = {
    "paper": paper,
    "graded": graded,
    "arm-dependent bias": arm_bias,
    "three segments": three_segments,
    "80% binary": binary,
    "perfect": perfect,
    "uninformative": uninformative,
}


def tied_uninformative(n: int, systems: int, rng: np.random.Generator) -> World:
    """All systems equal, the judge's score is noise."""
    y = np.clip(0.6 + SPREAD * rng.standard_normal((n, systems)), 0.0, 1.0)
    return _world(rng.random(y.shape), y)


def tied_rare_errors(n: int, systems: int, rng: np.random.Generator) -> World:
    """All fail in 4% of the items; the judge sees none of the first system's failures, all of the last's."""
    y = (rng.random((n, systems)) < 0.96).astype(np.float64)
    seen = rng.random(y.shape) < np.linspace(0.0, 1.0, systems)
    return _world(np.where(seen, y, 1.0), y)


def tied_skewed(n: int, systems: int, rng: np.random.Generator) -> World:
    """All near 0 with a long tail, which the judge sees dimly."""
    y = rng.beta(0.2, 3.8, (n, systems))
    return _world(y + 0.05 * rng.standard_normal(y.shape), y)


def tied_pool(n: int, systems: int, rng: np.random.Generator) -> World:
    """A fixed pool whose means are exactly equal: every system's scores are the same, in another order."""
    column = np.clip(0.6 + SPREAD * rng.standard_normal(n), 0.0, 1.0)
    y = np.stack([rng.permutation(column) for _ in range(systems)], axis=1)
    return _world(y + 0.1 * rng.standard_normal(y.shape), y)


NULLS: dict[str, Callable[[int, int, np.random.Generator], World]] = {
    "uninformative": tied_uninformative,
    "rare errors": tied_rare_errors,
    "skewed": tied_skewed,
    "fixed pool": tied_pool,
}


# small pools: many systems, few items


def leaderboard(n: int, systems: int, kind: str, quality: str, rng: np.random.Generator) -> World:
    """Systems up to .32 below the best, the second at least .02; items that are hard or easy for all.

    Args:
        n: items.
        systems: how many, in random order.
        kind: ``rating`` (spread .2) or ``pass/fail``.
        quality: of the judge, a key of :data:`QUALITIES`.
        rng: source of everything.
    """
    below = np.concatenate([[0.0], 0.02 + 0.3 * rng.random(systems - 1)])
    mean = np.clip(rng.permutation(0.65 - below) + 0.12 * rng.standard_normal((n, 1)), 0.0, 1.0)
    noise, bias, agrees = QUALITIES[quality]
    if kind == "rating":
        y = np.clip(mean + SPREAD * rng.standard_normal(mean.shape), 0.0, 1.0)
        off = bias * rng.standard_normal(systems) + noise * rng.standard_normal(y.shape)
        return _world(y + off, y)
    y = (rng.random(mean.shape) < mean).astype(np.float64)
    return _world(np.where(rng.random(y.shape) < agrees, y, 1.0 - y), y)


QUALITIES = {"weak": (0.6, 0.1, 0.6), "middling": (0.2, 0.1, 0.8), "good": (0.05, 0.05, 0.97)}
"""Noise and bias per system of a judge of ratings, and how often one of pass/fail agrees with humans."""


def tied_passes(n: int, systems: int, rng: np.random.Generator) -> World:
    """Pass or fail, exactly as many passes for every system; the judge is right in 80%."""
    y = np.stack([rng.permutation(np.arange(n) < 0.7 * n) for _ in range(systems)], axis=1).astype(float)
    return _world(np.where(rng.random(y.shape) < 0.8, y, 1.0 - y), y)


def twins(n: int, systems: int, rng: np.random.Generator) -> World:
    """The same answers under several names; the judge prefers the first name."""
    y = np.repeat(np.clip(0.6 + SPREAD * rng.standard_normal((n, 1)), 0.0, 1.0), systems, axis=1)
    favour = np.where(np.arange(systems) == 0, 0.2, 0.0)
    return _world(y + favour + 0.1 * rng.standard_normal(y.shape), y)


def one_item_decides(n: int, systems: int, rng: np.random.Generator) -> World:
    """All have the same scores in another order, but one item: there the last system gains 1/4."""
    world = tied_pool(n, systems, rng)
    world.human[rng.integers(n), -1] += 0.25
    return _world(world.judge, np.clip(world.human, 0.0, 1.25) / 1.25)


def surprise(n: int, systems: int, rng: np.random.Generator) -> World:
    """As many passes for every system; the judge is right, but wrong on a tenth of the items."""
    y = tied_passes(n, systems, rng).human
    judge = y.copy()
    rows = rng.permutation(n)[: n // 10]
    judge[rows] = 1.0 - judge[rows]
    return _world(judge, y)


SMALL_NULLS: dict[str, Callable[[int, int, np.random.Generator], World]] = {
    "ratings in another order": tied_pool,
    "as many passes": tied_passes,
    "the same answers": twins,
    "wrong on a tenth of the items": surprise,
    "one item decides": one_item_decides,
}
