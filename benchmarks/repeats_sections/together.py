"""Worlds in which a reading brings several scores of an item at once, and runs of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from evalbudget.backtest import RecordedScores
from evalbudget.repeats.backtest._pool import Draws, Pool, pools_of
from places import data_file
from references.joint_scores import Chooser
from repeats_sections.judges import FILE, MIN_REPEATS
from repeats_sections.readings import Run

FloatArray = NDArray[np.float64]

HANNA = "hanna_multijudge.npz"
SCALES = (1.0, 5.0, 10.0, 100.0)
_NOISE = 0.1  # median standard deviation of a reading, as a share of the scale
_QUANTILES = 200


@dataclass(frozen=True, slots=True)
class World:
    """Several scores of the same items.

    Attributes:
        name: for tables.
        scores: their names.
        pools: one per score, with the same items.
        ranges: of each score's scale.
        recorded: whether the scores were recorded.
    """

    name: str
    scores: tuple[str, ...]
    pools: tuple[Pool, ...]
    ranges: tuple[float, ...]
    recorded: bool


def together(name: str, values: FloatArray, scores: Sequence[str], ranges: Sequence[float]) -> World:
    """A world of recorded readings, each with all its scores, shape (n_items, n_scores, n_repeats).

    Readings that miss a score are left out, and items with fewer than 6 others.
    """
    complete = np.where(np.isnan(values).any(axis=1, keepdims=True), np.nan, values)
    items = tuple(f"item {i}" for i in range(len(values)))
    recorded = RecordedScores(complete[None], (name,), items, tuple(scores))
    pools = pools_of((recorded,), model=None, rater=None, min_repeats=MIN_REPEATS)
    shared = tuple(replace(pool, keys=pools[0].keys) for pool in pools)  # draw j is one and the same reading
    return World(name, tuple(scores), shared, tuple(ranges), True)


def recorded_worlds(quick: bool) -> Iterator[World]:
    """Five judges of the same answers, and six criteria of the same stories."""
    judged = RecordedScores.load(data_file(FILE))
    values = judged.scores[0, : 40 if quick else None].astype(np.float64)
    yield together("5 judges of answers", values, judged.raters, [9.0] * len(judged.raters))
    stories = RecordedScores.load(data_file(HANNA))
    criteria = tuple(dict.fromkeys(stories.categories or ()))
    n_models, n_items, n_raters, _ = stories.scores.shape
    by_story = stories.scores.reshape(n_models * n_items // len(criteria), len(criteria), n_raters)
    values = by_story[: 40 if quick else None].astype(np.float64)
    yield together(f"{len(criteria)} criteria of stories", values, criteria, [4.0] * len(criteria))


def normal_world(correlation: float, n_items: int) -> World:
    """Normal readings on four scales; log variances with standard deviation 1 and this correlation.

    The noise of an item's scores is independent.
    """
    rng = np.random.default_rng(round(100 * correlation))
    common, own = rng.normal(size=(n_items, 1)), rng.normal(size=(n_items, len(SCALES)))
    log_variance = np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * own
    sd = _NOISE * np.exp(log_variance / 2.0) * np.array(SCALES)
    values = sd[:, :, None] * norm.ppf((np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    names = tuple(f"0 to {scale:g}" for scale in SCALES)
    world = together(f"normal, correlation {correlation:g}", values, names, SCALES)
    independent = tuple(
        replace(pool, keys=pool.keys ^ np.uint64(d + 1)) for d, pool in enumerate(world.pools)
    )
    return replace(world, pools=independent, recorded=False)


def run_chooser(world: World, chooser: Chooser, budget: int, seed: int) -> list[Run]:
    """Ask and tell one by one; the run of every score. Reading j of an item is the same for every chooser."""
    draws = [Draws(pool, seed, budget) for pool in world.pools]
    items: list[int] = []
    epochs: list[int] = []
    weights: list[float] = []
    values: list[list[float]] = []
    for _ in range(budget):
        request = chooser.ask()
        _, item, epoch, _ = request.cell
        scores = [draw.further(item, epoch) for draw in draws]
        chooser.tell(scores)
        items.append(item)
        epochs.append(epoch)
        weights.append(np.nan if request.weight is None else request.weight)
        values.append(scores)
    item_, epoch_, weight_ = np.array(items), np.array(epochs), np.array(weights)
    columns = np.array(values).T
    return [Run(len(world.pools[0].items), item_, epoch_, column, weight_) for column in columns]
