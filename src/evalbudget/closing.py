r"""When an item is given up: a finding about the item, not a count of its failures.

An item that failed x of its n calls is compared with the other items of its model. Against "it fails as often
as they do", at the rate f_0, stands "it fails nearly always", at f_1:

.. math:: e = \Bigl(\frac{f_1}{f_0}\Bigr)^x \Bigl(\frac{1 - f_1}{1 - f_0}\Bigr)^{n - x}, \quad
          f_0 = \max\Bigl(.05, \frac{F + 1}{C + 2}\Bigr), \quad f_1 = \max\Bigl(.95, \frac{1 + f_0}{2}\Bigr)

with F failures in C calls of the others. It is given up at e >= 20 K, K being the number of items: where all
fail alike, and f_0 is known well, the first of them is given up in about one of 20 runs. It is known less
well from few items, and the more calls fail the more that matters. Until every item was read four times, any
was given up in .03 and .08 of runs of 100 items where 30 and 50% of calls failed, in .07 and .15 of runs of
10 (400 runs each).

Of 100 items, one that always fails is given up after 3 calls where the others fail in 2% of theirs, after 4,
7 and 12 where they fail in 10, 30 and 50%.

Failures that are bought again and again must not make failing look ordinary: of 100 items of which ten always
fail, none would ever be given up. So of the others an item that was never answered counts as one failed call.
One that would be given up itself, by comparison with those that failed too seldom for that, does not count.

A model that answers nothing gives no evidence against single items. All of them are closed when it has never
answered in 24 calls to eight items or more, or when every item has failed as much more often than it was read
as it takes to give up one among items that never fail, eight failures or more in all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from evalbudget.outage import DOWN_AFTER

if TYPE_CHECKING:  # numpy takes longer to import than samplers do
    from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray

_LIMIT = 20.0
"""Evidence for K items is wanted K times over, so that one in so many runs gives any up wrongly."""
_LEAST_RATE = 0.05
"""Of failures, that the other items are taken to have at least."""
_ALWAYS = 0.95
"""Of failures, of an item that nearly always fails."""
_ROUNDING = 1e-9


def fewest_failures(n_items: int) -> int:
    """By how many an item's failures must exceed its readings at least before it can be given up.

    Args:
        n_items: K, items of the model.
    """
    return math.ceil(math.log(_LIMIT * n_items) / math.log(_ALWAYS / _LEAST_RATE) - _ROUNDING)


def answers_nothing(reads: int, fails: int, items_failed: int, n_items: int) -> bool:
    """Whether a model is down, rather than unable to answer single items.

    Args:
        reads: calls that it ever answered.
        fails: calls that failed.
        items_failed: items of which calls failed.
        n_items: K, items of the model.
    """
    return not reads and fails >= 3 * DOWN_AFTER and items_failed >= min(DOWN_AFTER, n_items)


def closed(
    fails: IntArray, calls: IntArray, *, more_items: int = 0, more_fails: int = 0, more_calls: int = 0
) -> BoolArray:
    """Which items of one model are given up, as a function of what came back and of nothing else.

    Args:
        fails: calls of each item that failed, shape (k,).
        calls: calls of each item that came back, failed or answered, shape (k,).
        more_items: further items, where not all are listed; each failed by less than :func:`fewest_failures`
            more often than it was read.
        more_fails: failures of theirs; of one that was never answered only the first.
        more_calls: calls of theirs, of one that was never answered only the first.

    Returns:
        Shape (k,).
    """
    import numpy as np

    n_items = fails.size + more_items
    if not n_items:
        return np.zeros(0, dtype=np.bool_)
    limit = math.log(_LIMIT * n_items)
    answered = calls > fails
    lead = 2 * fails - calls
    fewest = fewest_failures(n_items)
    hopeless = bool((lead >= fewest).all()) and int(lead.sum()) >= DOWN_AFTER
    silent = answers_nothing(int((calls - fails).sum()), int(fails.sum()), int((fails > 0).sum()), n_items)
    if not more_items and (hopeless or silent):
        return np.ones(fails.size, dtype=np.bool_)

    def log_e(counts: BoolArray) -> FloatArray:
        """By comparison with the further items and those of these that count."""
        own_fails = np.where(answered, fails, 1) * counts
        own_calls = np.where(answered, calls, 1) * counts
        others_failed = int(own_fails.sum()) + more_fails - own_fails
        others_called = int(own_calls.sum()) + more_calls - own_calls
        usual = np.maximum(_LEAST_RATE, (others_failed + 1) / (others_called + 2))
        always = np.maximum(_ALWAYS, (1.0 + usual) / 2.0)
        return np.asarray(
            fails * np.log(always / usual) + (calls - fails) * np.log((1.0 - always) / (1.0 - usual))
        )

    asked = calls > 0
    suspect = log_e(asked & (lead < fewest)) >= limit - _ROUNDING
    return np.asarray(log_e(asked & ~suspect) >= limit - _ROUNDING)
