"""Whose effect of position can be told from how good the models are, and with whom it is shared.

A judge favours what is shown first, or second. Whoever saw two models both ways shows by how much, and has an
effect of its own (in logistic models only with enough votes: effects of few each would bias what is estimated
beside them). All others share one effect, which can be told if the two were shown both ways to them together:
one that is right if chance decided who saw which order. It then holds for a group of judges, whose single
effects scatter around it, so that the judges are what is sampled; with two of them nothing is known of that
scatter. Where the others saw one order only, nothing tells what it did to them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.statistics import FloatArray, IntArray
from evalbudget_pairwise._preferences import Preferences

_MANY = 20
"""Items in each order, or one in so many judgements, that an effect takes where effects are few."""
_SHARING, _SHARING_IN_FEW = 3, 10
"""Judges whose effects show how far they scatter, two in each order at least; and where effects are few."""


@dataclass(frozen=True, eq=False)
class PositionEffects:
    """Of some judgements.

    Attributes:
        group: number of the effect of each judgement, shape (n,); -1 for none.
        shared: judgements whose effect is one of several judges, shape (n,).
        untold: judgements whose effect of position cannot be told from how good the models are, shape (n,).
        own: effects that are one judge's; the shared one, if there is one, has the next number.
        without: where judges share an effect, what remains of the weight of their order without the judge's
            own, else 1, shape (n,).
    """

    group: IntArray
    shared: NDArray[np.bool_]
    untold: NDArray[np.bool_]
    own: int
    without: FloatArray

    @property
    def count(self) -> int:
        """Of the effects."""
        return int(self.group.max(initial=-1)) + 1


def position_effects(preferences: Preferences, rows: IntArray, *, sparing: bool = False) -> PositionEffects:
    """Which judgements share an effect of position.

    Args:
        preferences: all of them.
        rows: those to look at, shape (n,).
        sparing: whether a judge has an effect of its own only with many votes; with any in both orders, else.
    """
    n = rows.size
    none, all_of_it = np.zeros(n, dtype=bool), np.ones(n)
    if not preferences.ordered:
        return PositionEffects(np.full(n, -1), none, ~none, 0, all_of_it)
    _, judge = np.unique(preferences.judge[rows], return_inverse=True)
    both = _both_ways(preferences, rows, judge)
    is_own = both >= (min(_MANY, max(n // _MANY, 1)) if sparing else 1)
    sharing = _SHARING_IN_FEW if sparing else _SHARING
    if int((~is_own).sum()) < sharing:  # nobody to share it with
        is_own = both >= 1
    group = np.where(is_own, np.cumsum(is_own) - 1, -1)[judge]
    rest = group < 0
    own = int(is_own.sum())
    if not rest.any():
        return PositionEffects(group, none, none, own, all_of_it)
    together = np.zeros(int(rest.sum()), dtype=np.int64)
    if not _both_ways(preferences, rows[rest], together).any():
        return PositionEffects(group, none, rest, own, all_of_it)
    # of each judge's order among those who share
    turned = (preferences.first[rows] > preferences.second[rows])[rest].astype(np.int64)
    cell = 2 * judge[rest] + turned
    counts = np.bincount(cell, minlength=2 * is_own.size)
    rivals = counts.reshape(-1, 2)
    without = all_of_it.copy()
    without[rest] = 1.0 - counts[cell] / rivals.sum(axis=0)[turned]
    enough = int((~is_own).sum()) >= sharing and bool(((rivals > 0).sum(axis=0) > 1).all())
    return PositionEffects(np.where(rest, own, group), rest, none if enough else rest, own, without)


def identified(preferences: Preferences) -> Preferences | None:
    """The judgements of which it can be told what position does to them; None if they connect not all models.

    Effects are few (:func:`position_effects`). Judgements without a verdict stay.

    Args:
        preferences: all of them.
    """
    while True:
        voted = preferences.voted
        if not voted.value.size or not voted.is_connected:
            return None
        untold = position_effects(voted, np.arange(voted.value.size), sparing=True).untold
        if not untold.any():
            return preferences
        told = np.zeros(len(preferences.judges), dtype=bool)
        told[voted.judge[~untold]] = True
        preferences = preferences.where(told[preferences.judge] | np.isnan(preferences.value))


def _both_ways(preferences: Preferences, rows: IntArray, who: IntArray) -> IntArray:
    """Items that somebody saw in each of the two orders, over all pairs of models, shape (n_who,)."""
    k = len(preferences.models)
    first, second = preferences.first[rows], preferences.second[rows]
    low, high = np.minimum(first, second), np.maximum(first, second)
    pair = (who * k + low) * k + high
    _, pair = np.unique(pair, return_inverse=True)
    turned = (first == high).astype(np.int64)
    once = np.unique(np.stack([pair, turned, preferences.item[rows]]), axis=1)
    counts = np.bincount(2 * once[0] + once[1], minlength=2 * (int(pair.max()) + 1)).reshape(-1, 2)
    owner = np.zeros(counts.shape[0], dtype=np.int64)
    owner[pair] = who
    fewer = counts.min(axis=1)
    return np.bincount(owner, weights=fewer, minlength=int(who.max()) + 1).astype(np.int64)
