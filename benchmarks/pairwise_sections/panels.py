"""Panels of judges, each with a bias of its own, whose win rate is known exactly."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from evalbudget_pairwise import Preferences


@dataclass(frozen=True)
class Panel:
    """Unless it is a tie, judge j prefers A with probability rate + bias_j if A is first, else rate - bias_j.

    Attributes:
        judges: how many.
        votes: of each.
        rate: of A, ties apart.
        scatter: standard deviation of biases, about 0.
        orders: ``chance``, for each vote; ``one``, the same for all votes of a judge, by chance; ``mixed``,
            the first for every second judge.
        ties: share of votes that are ties.
        same_items: whether all judges see the same items, on which they tend to agree.
    """

    judges: int
    votes: int
    rate: float = 0.5
    scatter: float = 0.2
    orders: str = "chance"
    ties: float = 0.0
    same_items: bool = False

    @property
    def win_rate(self) -> float:
        """Of A, ties half a win."""
        return (1.0 - self.ties) * self.rate + 0.5 * self.ties

    def preferences(self, seed: int | list[int]) -> Preferences:
        """All votes of all judges."""
        rng = np.random.default_rng(seed)
        judge = np.repeat(np.arange(self.judges), self.votes)
        n_items = self.votes if self.same_items else judge.size
        item = np.arange(judge.size) % n_items
        most = min(self.rate, 1.0 - self.rate)
        bias = np.clip(rng.normal(0.0, self.scatter, self.judges), -most, most)
        sign = np.where(self._first(rng, judge), 1.0, -1.0)
        agreement = 0.4 if self.same_items else 0.0
        z = np.sqrt(agreement) * rng.standard_normal(n_items)[item]
        z += np.sqrt(1.0 - agreement) * rng.standard_normal(judge.size)
        won = (ndtr(z) < self.rate + sign * bias[judge]).astype(np.float64)
        won = np.where(rng.random(judge.size) < self.ties, 0.5, won)
        a_first = sign > 0.0
        return Preferences(
            tuple(map(str, range(n_items))),
            ("a", "b"),
            tuple(f"judge {j}" for j in range(self.judges)),
            item,
            np.where(a_first, 0, 1),
            np.where(a_first, 1, 0),
            judge,
            np.where(a_first, won, 1.0 - won),
        )

    def _first(self, rng: np.random.Generator, judge: NDArray[np.int64]) -> NDArray[np.bool_]:
        by_chance = rng.random(judge.size) < 0.5
        of_judge = (rng.random(self.judges) < 0.5)[judge]
        if self.orders == "chance":
            return by_chance
        return of_judge if self.orders == "one" else np.where(judge % 2 == 0, by_chance, of_judge)
