"""Benchmarks that fit a pilot: what an evaluation may meet that is planned by it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.recorded._declared import Declared
from evalbudget.recorded._scores import RecordedScores

WORLDS = 40

_FEWEST = 20  # items of a pilot that can stand for others


def worlds(
    pilot: RecordedScores, n_items: int, *, n_worlds: int = WORLDS, seed: int = 0
) -> Iterator[RecordedScores]:
    """Benchmarks drawn from resampled pilots (the bootstrap, Efron 1979, twice).

    The pilot's items drawn with replacement are what the population may be, as far as the pilot tells; a
    benchmark is drawn from these with replacement again.

    Args:
        pilot: scores of several models; items that not all of them answered are left out.
        n_items: of each benchmark.
        n_worlds: how many.
        seed: of the draws.

    Raises:
        InvalidInferenceError: fewer than 20 items have scores of all models.
        InvalidInputError: no item, or no benchmark, is asked for.
    """
    if n_items < 1 or n_worlds < 1:
        raise InvalidInputError(f"{n_worlds} benchmarks of {n_items} items; ask for one or more of each")
    complete = ~np.isnan(pilot.scores).all(axis=(2, 3)).any(axis=0)
    if pilot.reference is not None:
        complete &= ~np.isnan(pilot.reference).all(axis=2).any(axis=0)
    known = np.flatnonzero(complete)
    if known.size < _FEWEST:
        raise InvalidInferenceError(
            f"{known.size} items have a score of every model, and a plan needs {_FEWEST} or more to tell how "
            "far models are apart; run the pilot on more items"
        )
    names = tuple(f"{number}" for number in range(n_items))
    for world in range(n_worlds):
        rng = np.random.default_rng([seed, 9, world])
        population = known[rng.integers(known.size, size=known.size)]
        drawn = population[rng.integers(known.size, size=n_items)]
        yield RecordedScores(
            pilot.scores[:, drawn],
            pilot.models,
            names,
            pilot.raters,
            categories=None if pilot.categories is None else tuple(pilot.categories[i] for i in drawn),
            reference=None if pilot.reference is None else pilot.reference[:, drawn],
            one_measure=pilot.one_measure,
            declared=_directions(pilot, names),
        )


def _directions(pilot: RecordedScores, names: Sequence[str]) -> Declared | None:
    """Which way its scores are better: what else a source declares is not of items drawn from it."""
    if pilot.declared is None:
        return None
    told = zip(pilot.raters, pilot.declared.lower_is_better, strict=True)
    known = {rater: lower for rater, lower in told if lower is not None}
    return Declared.of(pilot.models, names, pilot.raters, lower_is_better=known)


def median_and_most(counts: Sequence[float]) -> tuple[int, int]:
    """The median and the largest of them, rounded up.

    In a pilot, models are as far apart as they are and by chance besides. So the median is too small where
    several are close (``benchmarks/racing.py plans``).
    """
    return int(np.ceil(np.quantile(counts, 0.5, method="higher"))), int(np.ceil(max(counts)))
