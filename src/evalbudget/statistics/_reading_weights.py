"""Weights of readings in the mean of their item."""

from __future__ import annotations

import numpy as np

from evalbudget.statistics._bounds import FloatArray, IntArray


def are_of_one_sampler(item: IntArray, weight: FloatArray, n_items: int) -> bool:
    """Whether these can be weights that a sampler gave: some, and they leave what is held out a share.

    Args:
        item: of each reading, shape (n_readings,).
        weight: same shape, nan where held out.
        n_items: of the benchmark.
    """
    held = np.isnan(weight)
    if held.all():  # an item has one reading held out, or the several of one answer
        return int(np.bincount(item, minlength=n_items).max(initial=0)) <= 1
    n_held = np.bincount(item, held, n_items)
    given = np.bincount(item, np.where(held, 0.0, weight), n_items)
    return bool(((n_held == 0) | (given <= 1.0 + 1e-9)).all())


def item_shares(item: IntArray, weight: FloatArray | None, n_items: int) -> FloatArray:
    """Shares that sum to 1 over each item's readings; what weights leave of 1 falls to those held out.

    Args:
        item: of each reading, shape (n_readings,).
        weight: same shape, nan where held out; None: all readings of an item weigh the same.
        n_items: of the benchmark.
    """
    if weight is None:
        return np.asarray(1.0 / np.bincount(item, minlength=n_items)[item])
    held = np.isnan(weight)
    given = np.where(held, 0.0, weight)
    total = np.bincount(item, given, n_items)[item]
    n_held = np.bincount(item, held, n_items)[item]
    left = np.divide(1.0 - total, n_held, out=np.zeros(item.shape), where=n_held > 0)
    scaled = np.divide(given, total, out=np.zeros(item.shape), where=total > 0.0)
    return np.asarray(np.where(n_held > 0, np.where(held, left, given), scaled))
