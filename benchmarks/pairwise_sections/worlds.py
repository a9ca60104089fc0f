"""Judges whose win rates, strengths and position bias are known exactly, and whose items agree or not."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from scipy.special import expit, ndtr

from evalbudget.statistics._bounds import FloatArray
from evalbudget_pairwise import Preferences


@dataclass(frozen=True)
class World:
    """E[value for the first] = logistic(strength difference + position); items make verdicts agree.

    Attributes:
        strength: of the models.
        position: of the judge.
        ties: share of verdicts that are ties.
        agreement: share of the variance that belongs to the item's answers: two orders agree by it.
        whim: share that favours a position on that item, whoever is shown there: two orders disagree by it.
    """

    strength: tuple[float, ...]
    position: float = 0.0
    ties: float = 0.0
    agreement: float = 0.4
    whim: float = 0.0

    def rate(self, a: int, b: int) -> float:
        """Win rate of a against b, both orders weighing alike."""
        gap = self.strength[a] - self.strength[b]
        return float(0.5 * (expit(gap + self.position) + 1.0 - expit(-gap + self.position)))

    @property
    def bias(self) -> float:
        """Mean value for the first, less 1/2, over all pairs in both orders."""
        k = len(self.strength)
        gaps = [self.strength[a] - self.strength[b] for a, b in permutations(range(k), 2)]
        return float(np.mean(expit(np.array(gaps) + self.position)) - 0.5)

    def values(self, n_items: int, seed: int | list[int]) -> FloatArray:
        """Value for the first of every ordered pair and item, shape (k, k, n_items)."""
        rng = np.random.default_rng(seed)
        k = len(self.strength)
        answer = rng.standard_normal((k, n_items)) / np.sqrt(2.0)
        noise = rng.standard_normal((k, k, n_items))
        z = np.sqrt(self.agreement) * (answer[:, None] - answer[None])
        z += np.sqrt(1.0 - self.agreement - self.whim) * noise
        if self.whim:
            favour = np.tril(rng.standard_normal((n_items, k, k))).T
            z += np.sqrt(self.whim) * (favour + favour.swapaxes(0, 1))
        b = np.array(self.strength)
        p = expit(b[:, None] - b[None] + self.position)[:, :, None]
        ties = np.minimum(self.ties, 2.0 * np.minimum(p, 1.0 - p))
        u = ndtr(-z)
        return np.asarray(np.where(u < p - ties / 2.0, 1.0, np.where(u < p + ties / 2.0, 0.5, 0.0)))

    def preferences(self, n_items: int, seed: int | list[int], *, both: bool = True) -> Preferences:
        """All pairs on all items, in both orders, or in one that alternates from item to item."""
        k = len(self.strength)
        value = self.values(n_items, seed)
        rows = [
            (item, a, b)
            for item in range(n_items)
            for a, b in permutations(range(k), 2)
            if both or (a < b) == ((item + a + b) % 2 == 0)
        ]
        item, first, second = np.array(rows, dtype=np.int64).T
        return Preferences(
            tuple(map(str, range(n_items))),
            tuple(f"model {m}" for m in range(k)),
            ("judge",),
            item,
            first,
            second,
            np.zeros(item.size, dtype=np.int64),
            value[first, second, item],
        )


WORLDS = {
    "equal": World((0.0, 0.0)),
    "equal, bias and ties": World((0.0, 0.0), 0.8, 0.3),
    "unequal": World((0.5, -0.5), 0.5, 0.2),
    "far": World((2.0, -2.0), 0.5, 0.1),
    "six": World((1.0, 0.6, 0.2, -0.2, -0.6, -1.0), 0.6, 0.2),
}
