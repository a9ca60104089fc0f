r"""How many items make the mean as well known as asked, by the scores of one scorer: tables and JSON.

With items' true means spread by :math:`\sigma_a^2` and one score of an item by :math:`\sigma_e^2` about its
mean, n items with r scores each know the mean to

.. math:: h = t \sqrt{(\sigma_a^2 + \sigma_e^2 / r) / n},

t of the pilot's degrees of freedom. Where the pilot's source declares clusters of items, what they add to the
variance (:class:`~evalbudget.statistics._cluster_excess.ClusterExcess`) is added to :math:`\sigma_a^2`, and
t has the degrees of freedom of clusters. The larger count takes the variance at the upper end of its 80%
interval, since a pilot knows the variance no better than that.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np

from evalbudget._fields import Shown, percent
from evalbudget.errors import InvalidInferenceError, InvalidInputError
from evalbudget.plans._clusters import cluster_entries, clusters_of, say_clusters
from evalbudget.plans._result import Plans, table_of
from evalbudget.recorded._scores import RecordedScores
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._shrinkage import t_quantile

_SCORES = (1, 2, 4)
_SURE = 0.8
_FEWEST = 2
_NO_REPEATS = " The pilot has one score of each item, so it does not show what repeats gain."


@dataclass(frozen=True, slots=True)
class ItemsPlan:
    """One number of scores of each item.

    Attributes:
        scores_per_item: bought.
        items: needed for the half-width, or had for the money.
        items_upper: enough for the half-width in 80% of pilots like this; the same as ``items`` for money.
        calls: scores in all.
        cost: of them; of the items, not of their upper count.
        half_width: of the interval of the mean.
    """

    scores_per_item: Annotated[int, Shown("scores per item", "d")]
    items: Annotated[int, Shown("items", ",")]
    items_upper: Annotated[int, Shown("items, 80% sure", ",")]
    calls: Annotated[int, Shown("calls", ",")]
    cost: Annotated[float, Shown("cost", "~")]
    half_width: Annotated[float, Shown("half-width", ".4g")]


def plan_one_scorer(
    recorded: RecordedScores,
    *,
    half_width: float | None,
    usd: float | None,
    price: float,
    level: float,
    max_items: int | None,
    source: str,
) -> Plans:
    """Items for a half-width, or the half-width for some money.

    Args:
        recorded: scores of one model by one scorer.
        half_width: that the interval of the mean shall have, above 0.
        usd: money to spend, instead.
        price: of one score, its answer included.
        level: of the interval.
        max_items: how many there are; None: as many as are needed.
        source: names the pilot, for messages.

    Raises:
        InvalidInputError: an amount that is none.
        InvalidInferenceError: too few items, scores that never differ, or more items than there are.
    """
    for name, value in {"--half-width": half_width, "--usd": usd}.items():
        if value is not None and not (math.isfinite(value) and value > 0.0):
            raise InvalidInputError(f"{name} {value:g}: give a number above 0")
    scores = np.asarray(recorded.scores[0, :, 0], dtype=np.float64)
    between, noise, items = _variances(scores, source)
    within, degrees = noise or 0.0, items - 1.0
    clusters = clusters_of(recorded, np.asarray(recorded.true_scores[0, :, 0]), source)
    if clusters is not None:
        between, degrees = max(between + clusters.added, 0.0), clusters.degrees
    quantile, upper = float(t_quantile(level, degrees)), _upper(degrees)
    plans = []
    for repeats in _SCORES if within > 0.0 else _SCORES[:1]:
        variance = between + within / repeats
        if half_width is not None:
            needed = max(math.ceil(variance * (quantile / half_width) ** 2), _FEWEST)
            most = max(math.ceil(variance * upper * (quantile / half_width) ** 2), _FEWEST)
        else:
            assert usd is not None
            needed = most = min(int(usd / (price * repeats)), max_items or int(usd / price))
            if needed < _FEWEST:
                continue
        if max_items is not None and needed > max_items:
            continue
        calls = needed * repeats
        reached = quantile * math.sqrt(variance / needed)
        plans.append(ItemsPlan(repeats, needed, most, calls, calls * price, reached))
    if not plans:
        raise InvalidInferenceError(f"{source} does not support a plan: {_why(max_items, usd)}")
    document = {
        "plans": [asdict(plan) for plan in plans],
        "variance_of_items": between,
        "variance_of_repeats": noise,
        "items": items,
        **cluster_entries(recorded, clusters),
    }
    table = table_of(
        plans,
        f"{percent(level)} interval of the mean over items like the pilot's {items:,}, by one scorer, whose "
        f"bias is not in it.{_NO_REPEATS if noise is None else ''}",
    )
    say_clusters(table, recorded, clusters)
    return Plans(document, (table,))


def _variances(scores: FloatArray, source: str) -> tuple[float, float | None, int]:
    """Of items' means, of one score about its item's mean (None: no item has two), and items scored."""
    n = np.count_nonzero(~np.isnan(scores), axis=1)
    kept = scores[n > 0]
    n = n[n > 0]
    if n.size < _FEWEST:
        raise InvalidInferenceError(f"{source} has {n.size} items with a score; a plan needs two or more")
    means = np.nansum(kept, axis=1) / n
    spread = float(means.var(ddof=1))
    if spread <= 0.0:
        raise InvalidInferenceError(
            f"all items of {source} have the same score, so it does not show how scores vary; give a larger "
            "pilot"
        )
    if not (n > 1).any():
        return spread, None, int(n.size)
    squares = float(np.nansum((kept - means[:, None]) ** 2))
    within = squares / float((n - 1).sum())
    return max(spread - within * float((1.0 / n).mean()), 0.0), within, int(n.size)


def _upper(degrees: float) -> float:
    """By how much a variance is most probably larger than its estimate, at most."""
    from scipy.special import gammaincinv  # takes its time: not before it is needed

    return degrees / (2.0 * float(gammaincinv(degrees / 2.0, 1.0 - _SURE)))


def _why(max_items: int | None, usd: float | None) -> str:
    if usd is not None:
        return "the money does not buy two scores; raise --usd"
    return f"more than the {max_items:,} items of --max-items are needed; take a wider --half-width"
