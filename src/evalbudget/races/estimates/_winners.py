"""Which models of a race may be the best one, by what was read and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from evalbudget.errors import InvalidInferenceError
from evalbudget.estimate import check_level
from evalbudget.missing import Missing, as_missing
from evalbudget.races._draws import ModelDraws
from evalbudget.races.estimates._all_models import means_at_worst
from evalbudget.races.estimates._certain import certainly_beaten, exact_ties
from evalbudget.statistics._best_proof import pairwise_evidence

_ALL = 64  # models that are all compared with each other; of more, all with those that read most
_RIVALS = 16
_ROUNDING = 1e-9


class Rule(StrEnum):
    """How models are ruled out."""

    PAIRED = "paired e-values"
    """By the items both read, in the one random order that all models share."""
    INTERVALS = "intervals"
    """By intervals that hold for all models at once: each read items in a random order of its own."""


@dataclass(frozen=True)
class PossibleWinners:
    """Which models may be the best of those compared.

    Attributes:
        models: indices; with probability ``level`` the best of those compared is one of them, whenever one
            looks. Empty only if each is beaten by another one on the items that both answered.
        certain: of the models compared, those that no other one certainly beats: ``models`` and those that
            only a probability rules out.
        tied: the possible ones are known in full and exactly equal.
        rule: by which models were ruled out.
        level: probability.
    """

    models: frozenset[int]
    certain: frozenset[int]
    tied: bool
    rule: Rule
    level: float

    @property
    def is_exact(self) -> bool:
        """Whether nothing rests on probability."""
        return self.models == self.certain


def possible_winners(
    draws: Sequence[ModelDraws],
    *,
    n_items: int,
    among: Collection[int] | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
    dropped: Collection[int] | None = None,
    missing: str = Missing.WORST,
) -> PossibleWinners:
    """Models that may be the best one.

    A model is ruled out if another one certainly beats it, or by paired e-values
    (:mod:`evalbudget.statistics._best_proof`): by the proof that the sampler keeps, if it keeps one, or else
    pair by pair; where models have orders of their own, if its interval lies below another's, all intervals
    holding at once. Which of these rules it is follows from the sampler, never from the scores.

    Args:
        draws: of every model in the race, dropped ones included.
        n_items: of the benchmark.
        among: indices of the models to compare, such as those that did not break down; all if None.
        bounds: the declared range of the scores.
        level: of the answer.
        dropped: by a proof at this level, of a sampler that keeps one; None without.
        missing: what a missing score counts as; by default nothing is ruled out that missing scores might
            change.

    Raises:
        InvalidInputError: no models, or the bounds or the level cannot be used.
        UnknownNameError: no such value of ``missing``.
    """
    check_level(level)
    counted = as_missing(missing)
    chosen = frozenset(range(len(draws)) if among is None else among)
    if len(chosen) < 2:
        return PossibleWinners(chosen, chosen, False, Rule.PAIRED, level)
    certain = chosen - certainly_beaten(draws, chosen, n_items, counted)
    rule, out = Rule.PAIRED, frozenset(dropped or ())
    try:
        if dropped is None:
            out = _by_pairs(draws, sorted(chosen), n_items, 1.0 - level, counted)
    except InvalidInferenceError:  # models that read items in orders of their own
        rule = Rule.INTERVALS
        out = _by_intervals(draws, sorted(chosen), n_items, bounds, level, counted)
    left = certain - out
    if certain and not left:  # evidence against each: it happens with less than 1 - level
        left = certain
    tied = len(left) > 1 and exact_ties(draws, left, n_items, counted)
    return PossibleWinners(left, certain, tied, rule, level)


def _by_intervals(
    draws: Sequence[ModelDraws],
    chosen: Sequence[int],
    n_items: int,
    bounds: tuple[float, float],
    level: float,
    missing: Missing,
) -> frozenset[int]:
    if missing is Missing.DROP and any(draws[m].n_failed for m in chosen):  # means over different items
        return frozenset()
    lowest, highest = means_at_worst(draws, n_items=n_items, missing=missing, bounds=bounds)
    low = max(lowest[m].confidence_interval(level).low for m in chosen)
    # exact means of the same scores, summed in another order, differ by their rounding
    low -= _ROUNDING * (bounds[1] - bounds[0])
    return frozenset(m for m in chosen if highest[m].confidence_interval(level).high < low)


def _by_pairs(
    draws: Sequence[ModelDraws], chosen: Sequence[int], n_items: int, delta: float, missing: Missing
) -> frozenset[int]:
    """Models beaten by the paired e-values of the models that share one order.

    Raises:
        InvalidInferenceError: they do not.
    """
    order = _common_order([draws[m] for m in chosen])
    length = {m: draws[m].value.size for m in chosen}
    anchors = np.unique(np.concatenate([draws[m].known_item for m in chosen]))
    # most items first, then most points: those that can speak against the others
    rivals = sorted(chosen, key=lambda m: (-length[m], -float(np.nansum(draws[m].value))))
    rivals = rivals[: _ALL if len(chosen) <= _ALL else _RIVALS]
    threshold = max(len(draws) - 1, 2) / delta
    out: set[int] = set()
    by_length = sorted(chosen, key=lambda m: length[m])
    for start in range(0, len(by_length), _ALL):
        block = by_length[start : start + _ALL]
        longest = length[block[-1]]
        rows = [*block, *(m for m in rivals if m not in block)]
        score = np.full((len(rows), longest), np.nan)
        known = np.full((len(rows), n_items - order.pool), np.nan)  # some may be missing for all
        for k, m in enumerate(rows):
            end = min(length[m], longest)
            score[k, :end] = draws[m].value[:end]
            known[k, np.searchsorted(anchors, draws[m].known_item)] = draws[m].known
        found = pairwise_evidence(
            score,
            np.array([min(length[m], longest) for m in rows], dtype=np.int64),
            order.pool,
            known=known,
            opponents=np.array([k for k, m in enumerate(rows) if m in rivals], dtype=np.int64),
            missing=missing,
        )
        out |= {m for k, m in enumerate(block) if found[k] >= threshold}
    return frozenset(out)


def _common_order(draws: Sequence[ModelDraws]) -> ModelDraws:
    """The draws that went farthest, of models whose draws all begin as these."""
    longest = max(draws, key=lambda d: d.item.size)
    for d in draws:
        if d.chances is not None:
            raise InvalidInferenceError("models draw items by predictions of their own, and cannot be paired")
        if d.pool != longest.pool or d.known_item.size != d.known.size:
            raise InvalidInferenceError("models draw from different pools, so that they cannot be paired")
        if (d.item != longest.item[: d.item.size]).any():
            raise InvalidInferenceError(
                "models read items in different orders, so that they cannot be paired"
            )
    return longest
