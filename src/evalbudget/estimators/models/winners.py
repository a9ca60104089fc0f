"""Which models of a race may be the best one, by what was read and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from evalbudget.confidence.bounds import FloatArray
from evalbudget.draws import ModelDraws
from evalbudget.errors import InvalidInferenceError
from evalbudget.estimators.models.certain import certainly_beaten, exact_ties
from evalbudget.estimators.models.leaderboard import model_means
from evalbudget.estimators.models.sequences import of_pair
from evalbudget.estimators.result import check_level


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
) -> PossibleWinners:
    """Models that may be the best one.

    A model is ruled out if another one certainly beats it, or by the rule of paired e-values
    (:mod:`evalbudget.confidence.paired`); where models have orders of their own, if its interval lies below
    another's, all intervals holding at once.

    Args:
        draws: of every model in the race, dropped ones included.
        n_items: of the benchmark.
        among: indices of the models to compare, such as those that did not break down; all if None.
        bounds: the declared range of the scores.
        level: of the answer.

    Raises:
        InvalidInputError: no models, or the bounds or the level cannot be used.
    """
    check_level(level)
    chosen = frozenset(range(len(draws)) if among is None else among)
    if len(chosen) < 2:
        return PossibleWinners(chosen, chosen, False, Rule.PAIRED, level)
    certain = chosen - certainly_beaten(draws, chosen, n_items)
    rule = Rule.PAIRED
    try:
        out = _by_pairs(draws, sorted(chosen), (len(draws) - 1) / (1.0 - level))
    except InvalidInferenceError:  # models that read items in orders of their own
        rule = Rule.INTERVALS
        out = _by_intervals(draws, sorted(chosen), bounds, level)
    left = certain - out
    if certain and not left:  # evidence against each: it happens with less than 1 - level
        left = certain
    return PossibleWinners(left, certain, len(left) > 1 and exact_ties(draws, left, n_items), rule, level)


def _by_intervals(
    draws: Sequence[ModelDraws], chosen: Sequence[int], bounds: tuple[float, float], level: float
) -> frozenset[int]:
    if any(draws[m].n_failed for m in chosen):  # means over different items
        return frozenset()
    estimates = model_means(draws, bounds=bounds)
    found = {m: estimates[m].confidence_interval(level) for m in chosen}
    highest = max(interval.low for interval in found.values())
    return frozenset(m for m in chosen if found[m].high < highest)


def _by_pairs(draws: Sequence[ModelDraws], chosen: Sequence[int], threshold: float) -> frozenset[int]:
    out = set()
    for m in chosen:
        length = max(draws[m].value.size, 1)
        total = np.zeros(length + 1)
        for other in chosen:
            if other == m:
                continue
            e = _evidence(draws[other], draws[m])
            total[: e.size] += e
            total[e.size :] += e[-1]
        if total.max() >= threshold:
            out.add(m)
    return frozenset(out)


def _evidence(a: ModelDraws, b: ModelDraws) -> FloatArray:
    """E-value against 'b is at least as good as a' after 0, 1, ... shared items."""
    pair = of_pair(a, b)
    d = np.nan_to_num(pair.value, nan=0.5)
    known = pair.known_sum - 0.5 * pair.known_count
    capital = np.ones((6, d.size + 1))
    rho = 0.5 ** np.arange(1, 7)
    total, squares = known, 0.25
    for t, x in enumerate(d.tolist()):
        left = pair.pool - t
        m = 0.5 - total / left
        if m < 0:
            capital[:, t + 1 :] = np.inf
            break
        sd = np.sqrt(squares / (t + 1))
        lam = np.minimum(rho / sd, 0.9 / max(m, 1e-9)) if m < 1 else 0.0
        capital[:, t + 1] = capital[:, t] * (1 + lam * (x - min(m, 1.0)))
        total += x - 0.5
        squares += (x - 0.5) ** 2
    return np.asarray(capital.mean(axis=0))
