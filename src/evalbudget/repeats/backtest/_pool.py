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

_LARGEST_FIRST_BLOCK = 64


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
        readings: how many are expected, to prepare them in one go.
        priced: what each reading costs is prepared too, in ``costs``, shaped as ``values``.
    """

    def __init__(self, pool: Pool, seed: int, readings: int, *, priced: bool = False) -> None:
        self._pool = pool
        self._costs = pool.costs if priced else None
        self._keys = _mix(pool.keys ^ _mix(np.array([seed], dtype=np.uint64)))
        first = max(4, min(_LARGEST_FIRST_BLOCK, -(-readings // len(pool.items))))
        items = np.arange(len(pool.items))
        which = self._which(items, 0, first)
        self.values: list[list[float]] = pool.values[items[:, None], which].tolist()
        self.costs: list[list[float]] = []
        if self._costs is not None:
            self.costs = self._costs[items[:, None], which].tolist()

    def further(self, item: int, epoch: int) -> float:
        """A reading that was not prepared yet; prepares as many again."""
        drawn = self.values[item]
        while epoch >= len(drawn):
            which = self._which(np.array([item]), len(drawn), len(drawn))[0]
            drawn.extend(self._pool.values[item, which].tolist())
            if self._costs is not None:
                self.costs[item].extend(self._costs[item, which].tolist())
        return drawn[epoch]

    def _which(self, items: NDArray[np.int64], start: int, length: int) -> NDArray[np.int64]:
        """Which recorded repeat each reading is, shape (items, length)."""
        epochs = np.arange(start, start + length, dtype=np.uint64) * _GOLDEN
        bits = _mix(self._keys[items][:, None] + epochs) >> np.uint64(32)
        which = (bits * self._pool.counts[items].astype(np.uint64)[:, None]) >> np.uint64(32)
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
