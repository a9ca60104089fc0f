"""How many repeats an evaluation needs until every item is known well enough, from a pilot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy.special import ndtr, ndtri

from evalbudget._fields import Shown
from evalbudget.design import Design
from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.estimate import check_level
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.sampler import Sampler
from evalbudget.statistics._bounds import FloatArray, IntArray
from evalbudget.statistics._shrinkage import VariancePrior

PLAIN, BEST = "plain epochs", "variances known"
UPPER = 0.9
"""In this share of the worlds that fit the pilot, the upper count is enough."""

_WORLDS = 20
_FEWEST_WORLDS = 5
_MOST_CALLS = 400_000  # of all simulated runs together
_FEW_LEVELS = 20


@dataclass(frozen=True, slots=True)
class RepeatPlan:
    """What one way of repeating needs.

    Attributes:
        strategy: name of the sampler, ``plain epochs``, or ``variances known``: what nobody can beat who must
            find the variances out.
        calls: median over worlds that fit the pilot.
        calls_upper: enough in 90% of them.
        per_item: ``calls`` by the number of items.
    """

    strategy: Annotated[str, Shown("")]
    calls: Annotated[int, Shown("calls", ",")]
    calls_upper: Annotated[int, Shown("calls, 90% sure", ",")]
    per_item: Annotated[float, Shown("per item", ".1f")]


def plan_repeats(
    pilot: ItemReadings,
    half_width: float,
    samplers: Sequence[tuple[str, Callable[[Design, int, int], Sampler]]],
    *,
    level: float = 0.95,
    seed: int = 0,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> tuple[RepeatPlan, ...]:
    r"""Calls until the worst item's half-width z sigma_i / sqrt(n_i) is as wanted.

    .. math:: n_{\text{plain}} = K \lceil z^2 \max_i \sigma_i^2 / h^2 \rceil, \quad
              n_{\text{known}} = \sum_i \max(1, \lceil z^2 \sigma_i^2 / h^2 \rceil)

    The variances are unknown, so all three are computed in worlds drawn from what the pilot says of them:
    each sigma_i^2 from its posterior under a scaled inverse chi-square prior, which is fitted to the items
    drawn with replacement. A sampler is played in each world until the worst item there is known well enough.
    Scores are normal, and on the pilot's levels if it shows 20 or fewer. Where a few items vary far more than
    all others, a short pilot does not show how far, and the counts of plain epochs come out too small.

    Args:
        pilot: scores of items, some of them repeated.
        half_width: of an item's interval, in units of the scores.
        samplers: names, and what makes one of a design, a seed and a budget.
        level: of the interval.
        seed: of the worlds.
        progress: told how many worlds are done, and of how many.

    Returns:
        Plain epochs, the samplers in their order, and what the variances would allow.

    Raises:
        InvalidInputError: the half-width or the level is no good.
        InvalidInferenceError: no item has two scores, or nothing varies.
    """
    if not (np.isfinite(half_width) and half_width > 0):
        raise InvalidInputError(f"half-width is {half_width:g}; give a positive one, in units of the scores")
    moments = pilot.moments
    read = moments.n > 0
    if not (moments.squares > 0.0).any():
        raise InvalidInferenceError(
            "no item of the pilot has two scores that differ, so nothing is known of how scores vary; a "
            "pilot of 3 epochs or more is needed (with a temperature above 0)"
        )
    z = float(ndtri((1 + check_level(level)) / 2))
    squares, degrees = moments.squares[read], moments.n[read] - 1
    levels = np.unique(pilot.value)
    rng = np.random.default_rng(seed)
    expected = z**2 * float(squares.sum() / degrees.sum()) / half_width**2 * degrees.size
    worlds = int(np.clip(_MOST_CALLS / (3 * expected * max(len(samplers), 1)), _FEWEST_WORLDS, _WORLDS))
    counts: dict[str, list[float]] = {name: [] for name in (PLAIN, *(n for n, _ in samplers), BEST)}
    for number in range(worlds):
        progress(number, worlds)
        world = _World.of(moments.mean[read], _drawn(squares, degrees, rng), levels)
        needed = np.maximum(np.ceil(z**2 * world.variance / half_width**2 * (1 - 1e-9)), 1.0)
        plain = int(needed.max()) * needed.size
        counts[PLAIN].append(plain)
        counts[BEST].append(float(needed.sum()))
        for name, make in samplers:
            sampler = make(Design.of_items(needed.size), number, plain)
            counts[name].append(_played(sampler, world, needed, 2 * plain, rng))
    progress(worlds, worlds)
    return tuple(
        RepeatPlan(
            name,
            round(float(np.median(found))),
            round(float(np.quantile(found, UPPER, method="higher"))),
            float(np.median(found)) / int(read.sum()),
        )
        for name, found in counts.items()
    )


@dataclass(frozen=True, eq=False)
class _World:
    """Items whose scores are drawn, and their true variances.

    Attributes:
        mean: before scores are put on levels, shape (n_items,).
        sd: the same.
        variance: of a score, shape (n_items,).
        levels: that scores may have, ascending; None for any number.
    """

    mean: FloatArray
    sd: FloatArray
    variance: FloatArray
    levels: FloatArray | None

    @classmethod
    def of(cls, mean: FloatArray, variance: FloatArray, levels: FloatArray) -> _World:
        sd = np.sqrt(variance)
        if levels.size > _FEW_LEVELS:
            return cls(mean, sd, variance, None)
        edges = (levels[1:] + levels[:-1]) / 2
        below = ndtr((edges - mean[:, None]) / sd[:, None])
        chance = np.diff(below, axis=1, prepend=0.0, append=1.0)
        centre = chance @ levels
        return cls(mean, sd, np.asarray(chance @ levels**2 - centre**2), levels)

    def scores(self, item: IntArray, rng: np.random.Generator) -> FloatArray:
        """One more score of each of these items, shape of ``item``."""
        score = self.mean[item] + self.sd[item] * rng.standard_normal(item.size)
        if self.levels is None:
            return np.asarray(score)
        return np.asarray(self.levels[np.abs(self.levels - score[:, None]).argmin(axis=1)])


def _drawn(squares: FloatArray, degrees: IntArray, rng: np.random.Generator) -> FloatArray:
    """A variance for every item, from its posterior."""
    several = np.flatnonzero(degrees > 0)
    prior = VariancePrior(0.0, 0.0, 0)
    while not prior.mean > 0.0:  # none of the items drawn may vary
        again = rng.choice(several, several.size)
        prior = VariancePrior.fit(squares[again] / degrees[again], degrees[again])
    scale = prior.mean * (prior.strength - 2.0) + squares
    return np.asarray(scale / rng.chisquare(prior.strength + degrees), dtype=np.float64)


def _played(
    sampler: Sampler, world: _World, needed: FloatArray, most: int, rng: np.random.Generator
) -> float:
    """Readings until every item has as many as it needs; ``most`` if that takes longer."""
    book, last = ArrayBook(sampler), needed.astype(np.int64) - 1
    short = needed.size
    while book.n < most and (asked := book.ask(most - book.n)) is not None:
        ends = np.flatnonzero(asked.epoch == last[asked.item])
        if ends.size == short:
            return float(book.n - asked.item.size + ends[-1] + 1) if short else float(book.n)
        short -= ends.size
        book.tell(world.scores(asked.item, rng))
    return float(most)
