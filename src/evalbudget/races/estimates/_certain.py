"""What the items read leave no doubt about: which models cannot be the best whatever the others score."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from evalbudget.missing import Missing
from evalbudget.races._draws import ModelDraws
from evalbudget.statistics._bounds import FloatArray

_SUMS_DIFFER = 1e-9  # sums of the same scores in another order differ by less
_RIVALS = 16  # models, best first, that the others are compared with one by one where some failed


def certainly_beaten(
    draws: Sequence[ModelDraws], among: Collection[int], n_items: int, missing: Missing = Missing.WORST
) -> frozenset[int]:
    """Models that another one beats on the whole benchmark, whatever the items not read will bring.

    An unread score may be anything in [0, 1], or be missing in the end.

    Args:
        draws: of every model in the race.
        among: indices of the models to compare.
        n_items: of the benchmark.
        missing: what a missing score counts as.
    """
    chosen = sorted(among)
    low, high = _sums(draws, chosen, n_items, missing)
    if missing is not Missing.DROP or not any(draws[m].n_missing(n_items) for m in chosen):
        return frozenset(m for m in chosen if high[m] < max(low.values()) - _SUMS_DIFFER)
    rivals = sorted(chosen, key=lambda m: -low[m])[:_RIVALS]
    score, failed = _tables(draws, chosen, n_items)
    row = {m: k for k, m in enumerate(chosen)}
    beaten = set()
    for rival in rivals:
        least = _least(score[row[rival]], failed[row[rival]], score, failed)
        beaten |= {m for m in chosen if m != rival and least[row[m]] > _SUMS_DIFFER}
    return frozenset(beaten)


def exact_ties(
    draws: Sequence[ModelDraws], among: Collection[int], n_items: int, missing: Missing = Missing.WORST
) -> bool:
    """Whether all of these models read all they can, and no two of them differ on the items that count."""
    chosen = sorted(among)
    if not all(draws[m].exhausted for m in chosen):
        return False
    score, failed = _tables(draws, chosen, n_items)
    if failed.any() and missing is Missing.WORST:
        return False
    if not failed.any() or missing is Missing.ZERO:
        sums = score.sum(axis=1)
        return float(np.ptp(sums)) <= _SUMS_DIFFER
    return all(
        bool((np.abs(_difference(score[k], failed[k], score, failed)) <= _SUMS_DIFFER).all())
        for k in range(len(chosen))
    )


def _sums(
    draws: Sequence[ModelDraws], chosen: Sequence[int], n_items: int, missing: Missing
) -> tuple[dict[int, float], dict[int, float]]:
    """Smallest and largest sum of each model's scores that what is unread, or missing, allows."""
    low = {m: float(draws[m].known.sum() + np.nansum(draws[m].value)) for m in chosen}
    high = {}
    for m in chosen:
        unread = draws[m].pool - draws[m].value.size
        high[m] = low[m] + unread + (draws[m].n_missing(n_items) if missing is Missing.WORST else 0)
    return low, high


def _tables(
    draws: Sequence[ModelDraws], chosen: Sequence[int], n_items: int
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Scores, nan where unread, and which cells failed; shape (chosen, n_items)."""
    score = np.full((len(chosen), n_items), np.nan)
    failed = np.zeros(score.shape, dtype=bool)
    for k, m in enumerate(chosen):
        d = draws[m]
        score[k, d.known_item] = d.known
        score[k, d.item] = d.value
        failed[k, d.item[np.isnan(d.value)]] = True
        if d.exhausted:  # what is missing then are anchors, which failed
            failed[k] |= np.isnan(score[k])
    score[failed] = 0.0
    return score, failed


def _least(
    own: FloatArray, own_failed: NDArray[np.bool_], score: FloatArray, failed: NDArray[np.bool_]
) -> FloatArray:
    """Smallest possible sum of own less each model's scores, over items that fail for neither."""
    worst = np.where(np.isnan(own), 0.0, own) - np.where(np.isnan(score), 1.0, score)
    # an item that either has not answered yet may still fail, and then counts for nothing
    worst = np.where(np.isnan(own) | np.isnan(score), np.minimum(worst, 0.0), worst)
    worst[failed | own_failed] = 0.0
    return np.asarray(worst.sum(axis=1))


def _difference(
    own: FloatArray, own_failed: NDArray[np.bool_], score: FloatArray, failed: NDArray[np.bool_]
) -> FloatArray:
    both = ~(failed | own_failed)
    return np.asarray(((own - score) * both).sum(axis=1))
