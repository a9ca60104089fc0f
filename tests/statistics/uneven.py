"""Tiny pools read by rules that look at what was read: every order, with its probability."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evalbudget.statistics._uneven_draws import UnevenDraws

Floats = NDArray[np.float64]


def rule(scores: Floats, read: list[int]) -> tuple[Floats, Floats]:
    """Predictions of all items, and rates at which they are drawn, after these were read."""
    known = [scores[i] for i in read if not np.isnan(scores[i])]
    share = (sum(known) + 0.4) / (len(known) + 1.0)
    f = np.clip(share + 0.3 * np.sin(np.arange(scores.size) + len(read)), 0.05, 0.95)
    return f, np.sqrt(f * (1.0 - f)) + 0.15 * (1.0 + np.cos(3.0 * np.arange(scores.size)))


def drawn(scores: Floats, order: list[int]) -> tuple[UnevenDraws, float]:
    """The draws of one order, by definition, and its probability."""
    columns: dict[str, list[float]] = {name: [] for name in ("f", "sum", "q", "v", "s", "least", "most")}
    chance = 1.0
    for t, item in enumerate(order):
        f, rate = rule(scores, order[:t])
        left = [i for i in range(scores.size) if i not in order[:t]]
        q = {i: rate[i] / sum(rate[j] for j in left) for i in left}
        chance *= q[item]
        noise = {i: f[i] * (1.0 - f[i]) for i in left}
        columns["f"].append(f[item])
        columns["sum"].append(sum(f[i] for i in left))
        columns["q"].append(q[item])
        columns["v"].append(sum(noise[i] / q[i] - noise[i] for i in left))
        columns["s"].append(sum(noise[i] * (1.0 - 2.0 * f[i]) / q[i] ** 2 for i in left))
        columns["least"].append(min(-f[i] / q[i] for i in left))
        columns["most"].append(max((1.0 - f[i]) / q[i] for i in left))
    array = {name: np.array(column) for name, column in columns.items()}
    return (
        UnevenDraws(
            pool=scores.size,
            value=scores[order] if order else np.zeros(0),
            prediction=array["f"],
            unread_sum=array["sum"],
            propensity=array["q"],
            variance=array["v"],
            skewness=array["s"],
            least=array["least"],
            most=array["most"],
        ),
        chance,
    )


def every(scores: Floats, n_draws: int) -> Iterator[tuple[UnevenDraws, float]]:
    """All beginnings of this length."""
    from itertools import permutations

    for order in permutations(range(scores.size), n_draws):
        yield drawn(scores, list(order))
