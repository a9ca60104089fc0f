"""A pool: the items of one model and one rater, and the readings a replay draws for them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.recorded._scores import RecordedScores
from evalbudget.statistics._bounds import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The items of one model and one rater that have enough recorded repeats to be replayed.

    Attributes:
        model: name.
        rater: name.
        items: names of the items kept.
        values: recorded repeats, moved to the front of each row, shape (n_items, repeats).
        counts: how many of a row are recorded, shape (n_items,).
        means: the true scores, shape (n_items,).
        variances: of one replayed reading, shape (n_items,).
        keys: fixes each item's draws, shape (n_items,).
        dropped: items with some, but too few, recorded repeats.
        unrecorded: items without any.
        costs: of the repeats in dollars, shape of ``values``; None where none is known.
    """

    model: str
    rater: str
    items: tuple[str, ...]
    values: NDArray[np.float64]
    counts: NDArray[np.int64]
    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    keys: NDArray[np.uint64]
    dropped: int
    unrecorded: int
    costs: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls, recorded: RecordedScores, model: int, rater: int, *, min_repeats: int, source: int = 0
    ) -> Pool:
        """The pool of one model and one rater; ``source`` tells several recordings' draws apart."""
        counts = recorded.counts[model, :, rater]
        kept = np.flatnonzero(counts >= min_repeats)
        names = tuple(recorded.items[i] for i in kept.tolist())
        values = np.asarray(recorded.scores[model, kept, rater], dtype=np.float64)
        front = np.argsort(np.isnan(values), axis=1, kind="stable")
        cell = (str(source), recorded.models[model], recorded.raters[rater])
        costs: NDArray[np.float64] | None = None
        if recorded.costs is not None:
            own = np.asarray(recorded.costs[model, kept, rater], dtype=np.float64)
            costs = np.take_along_axis(own, front, axis=1)
        return cls(
            model=recorded.models[model],
            rater=recorded.raters[rater],
            items=names,
            values=np.take_along_axis(values, front, axis=1),
            counts=counts[kept],
            means=recorded.true_scores[model, kept, rater],
            variances=recorded.true_variances[model, kept, rater],
            keys=np.array([_key(*cell, name) for name in names], dtype=np.uint64),
            dropped=int(((counts > 0) & (counts < min_repeats)).sum()),
            unrecorded=int((counts == 0).sum()),
            costs=costs,
        )

    @property
    def design(self) -> Design:
        """What a sampler is given."""
        return Design(items=self.items, models=(self.model,), raters=(self.rater,))

    def __str__(self) -> str:
        return f"model {self.model!r}, rater {self.rater!r}"


def pools_of(
    recordings: Sequence[RecordedScores], *, model: str | None, rater: str | None, min_repeats: int
) -> tuple[Pool, ...]:
    """Every (model, rater) pair of every recording, or only those of the names given.

    Raises:
        UnknownNameError: no recording has that model or rater.
        InvalidInputError: no pair has an item with enough repeats.
    """
    if min_repeats < 1:
        raise InvalidInputError(
            f"min_repeats is {min_repeats}; a replay draws from at least 1 recorded repeat"
        )
    for kind, name, known in (
        ("model", model, {name for recorded in recordings for name in recorded.models}),
        ("rater", rater, {name for recorded in recordings for name in recorded.raters}),
    ):
        if name is not None and name not in known:
            raise UnknownNameError(kind, name, known)
    pools = tuple(
        Pool.of(recorded, m, r, min_repeats=min_repeats, source=source)
        for source, recorded in enumerate(recordings)
        for m, model_name in enumerate(recorded.models)
        for r, rater_name in enumerate(recorded.raters)
        if model in (None, model_name) and rater in (None, rater_name)
    )
    if not any(pool.items for pool in pools):
        most = max((int(recorded.counts.max()) for recorded in recordings), default=0)
        raise InvalidInputError(
            f"no item has {min_repeats} recorded repeats of one model and one rater (the most in the file is "
            f"{most}); a backtest replays recorded repeats: score items several times, or lower min_repeats"
        )
    return pools


class Draws:
    """Reading j of item i, the same for whoever asks and in whatever order: common random numbers.

    A repeat is drawn uniformly, with replacement, from the item's recorded ones, by a counter-based hash
    (SplitMix64) of (seed, pool, item name, epoch). Dropping other items or pools changes no draw.

    Args:
        pool: where the repeats are recorded.
        seed: of this replay.
    """

    def __init__(self, pool: Pool, seed: int) -> None:
        self._pool = pool
        self._keys = _mix(pool.keys ^ _mix(np.array([seed], dtype=np.uint64)))

    def of(self, item: IntArray, epoch: IntArray) -> FloatArray:
        """These readings, shape of ``item``."""
        return np.asarray(self._pool.values[item, self._which(item, epoch)], dtype=np.float64)

    def costs_of(self, item: IntArray, epoch: IntArray) -> FloatArray:
        """What they cost in dollars, shape of ``item``; of a pool that knows."""
        assert self._pool.costs is not None
        return self._pool.costs[item, self._which(item, epoch)]

    def _which(self, item: IntArray, epoch: IntArray) -> IntArray:
        """Which recorded repeat each reading is."""
        bits = _mix(self._keys[item] + epoch.astype(np.uint64) * _GOLDEN) >> np.uint64(32)
        which = (bits * self._pool.counts[item].astype(np.uint64)) >> np.uint64(32)
        return which.astype(np.int64)


_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    # arrays only: numpy wraps them silently, scalars warn
    z = state + _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def _key(*parts: str) -> int:
    digest = hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
