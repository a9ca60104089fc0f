r"""Strengths of models by Bradley and Terry, ties as half wins, with a term for the position.

.. math:: \operatorname{logit} P(\text{first wins}) = b_{first} - b_{second} + \gamma_g

g is whose effect of position it is: a judge's own, or that of several judges together
(:mod:`evalbudget_pairwise._position_effects`); where none can be told there is none. Effects of few votes
each would drive the strengths apart (Neyman & Scott), so judges with few share one. b sums to 0, and is
fitted by (quasi-)likelihood to values in [0, 1]. Where one model wins everything its strength would be
infinite, so every pair of models that met is given one win and one loss of half a comparison each, shown in
no order, and every effect the same between equals: the prior of Jeffreys for one pair, which moves a pair
with n comparisons by 1/(n + 1) of its distance from even.

Errors are robust to clusters: an item's comparisons, in both orders, by all judges and of all pairs, are
one cluster; the covariance is :math:`H^{-1} (\sum_g u_g u_g') H^{-1} \, G / (G - 1)`, with H the
information and u_g the sum of a cluster's scores. What was added are clusters of their own in it, and count
whole: otherwise a model that always wins would have an error of nearly 0. Its interval is too wide rather
than too narrow. Judges who share an effect are clusters as well, as for win rates. Effects are
profiled out (each judgement has one of them at most), so that ten times the judges take ten times the time.

References:
    Neyman & Scott (1948), Consistent estimates based on partially consistent observations, Econometrica 16.
    Bradley & Terry (1952), Rank analysis of incomplete block designs, Biometrika 39. Davidson & Beaver
    (1977), On extending the Bradley-Terry model to incorporate within-pair order effects, Biometrics 33.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from evalbudget.statistics import FloatArray, IntArray, t_quantile
from evalbudget_pairwise._position_effects import identified, position_effects
from evalbudget_pairwise._preferences import Preferences

ADDED = 0.5
"""Of a win, and of a loss, to every pair that met."""
_STEPS = 100
_EXACT = 1e-12


@dataclass(frozen=True, eq=False)
class BradleyTerry:
    """The fit.

    Attributes:
        strength: b, shape (n_models,), summing to 0.
        covariance: of b, items random, shape (n_models, n_models); nan with fewer than two items.
        between: what judges who share an effect of position add to it, same shape.
        pull: by what one more win of a model (column) moves b (row), shape (n_models, n_models).
        degrees: of freedom, of items.
        judges: degrees of freedom of judges who share an effect; 0 if there are none.
    """

    strength: FloatArray
    covariance: FloatArray
    between: FloatArray
    pull: FloatArray
    degrees: float
    judges: int

    def against_average(self, model: int, level: float) -> tuple[float, float, float]:
        """Probability of a win against the average opponent, and its interval."""
        k = self.strength.size
        contrast = np.full(k, -1.0 / (k - 1))
        contrast[model] = 1.0
        return self._probability(contrast, level)

    def against(self, a: int, b: int, level: float) -> tuple[float, float, float]:
        """Probability that a wins against b, and its interval."""
        contrast = np.zeros(self.strength.size)
        contrast[a], contrast[b] = 1.0, -1.0
        return self._probability(contrast, level)

    def _probability(self, contrast: FloatArray, level: float) -> tuple[float, float, float]:
        value = float(contrast @ self.strength)
        of_items = float(contrast @ self.covariance @ contrast)
        of_judges = float(contrast @ self.between @ contrast)
        variance = of_items + of_judges
        if self.degrees < 1 or not math.isfinite(variance):
            return float(expit(value)), math.nan, math.nan
        degrees = self.degrees
        if of_judges > 0.0:
            degrees = variance**2 / (of_items**2 / degrees + of_judges**2 / self.judges)
        half = float(t_quantile(level, degrees)) * math.sqrt(variance)
        return float(expit(value)), float(expit(value - half)), float(expit(value + half))


def bradley_terry(preferences: Preferences) -> BradleyTerry:
    """Fit strengths, what position does being taken away.

    Args:
        preferences: of models that a chain of comparisons connects.
    """
    preferences = preferences.voted
    k = len(preferences.models)
    n = preferences.value.size
    effects = position_effects(preferences, np.arange(n), sparing=True)
    group = np.where(effects.untold, -1, effects.group)
    count = int(group.max(initial=-1)) + 1
    pairs = np.array(preferences.pairs)
    numbers = np.repeat(np.arange(count), 2)
    signed = np.zeros((n + 2 * len(pairs) + numbers.size, k))
    row = np.arange(n + 2 * len(pairs))
    signed[row, np.concatenate([preferences.first, np.repeat(pairs[:, 0], 2)])] = 1.0
    signed[row, np.concatenate([preferences.second, np.repeat(pairs[:, 1], 2)])] = -1.0
    n_added = signed.shape[0] - n
    basis = np.concatenate([np.eye(k - 1), -np.ones((1, k - 1))])  # of strengths that sum to 0
    votes = _Votes(
        signed @ basis,
        np.concatenate([group, np.full(2 * len(pairs), -1), numbers]),
        np.concatenate([preferences.value, np.tile([1.0, 0.0], n_added // 2)]),
        np.concatenate([np.ones(n), np.full(n_added, ADDED)]),
        count,
    )
    beta, gamma = _maximum(votes)
    step = votes.newton(beta, gamma)
    inverse = np.linalg.inv(step.information)
    # what was added counts whole, as clusters of its own
    scores = step.profiled * (votes.value - step.probability)[:, None]
    shared = effects.shared & ~effects.untold
    scores[:n][shared] /= effects.without[shared, None]
    clusters = int(np.unique(preferences.item).size)
    degrees = min(clusters - 1.0, clusters * (n - (k - 1.0) - count) / n)
    covariance, between = np.full((k, k), np.nan), np.zeros((k, k))
    spread = basis @ inverse
    judges = 0
    if degrees >= 1.0:
        meat = _squares(scores[:n], preferences.item) * (clusters / degrees)
        covariance = spread @ (meat + scores[n:].T @ scores[n:]) @ spread.T
        if shared.any():
            of_judge, item = preferences.judge[shared], preferences.item[shared]
            judges = int(np.unique(of_judge).size) - 1
            more = _squares(scores[:n][shared], of_judge)
            more -= _squares(scores[:n][shared], of_judge * len(preferences.items) + item)
            size, axis = np.linalg.eigh(more * ((judges + 1.0) / judges))
            between = spread @ (axis * np.maximum(size, 0.0)) @ axis.T @ spread.T
    return BradleyTerry(basis @ beta, covariance, between, spread @ basis.T, degrees, judges)


def ranks(preferences: Preferences, level: float) -> list[tuple[int, int]]:
    """Smallest and largest rank of each model; all are right at once with probability ``level``.

    From all differences at once (Bonferroni), and from the judgements alone of which it can be told what
    position does to them: with others, what is better and what is shown first would be the same. A model
    ranks above another one only if it would whatever the missing verdicts had been.

    Args:
        preferences: of models that a chain of comparisons connects.
        level: of all ranks.
    """
    k = len(preferences.models)
    told = identified(preferences)
    if told is None:
        return [(1, k)] * k
    fit = bradley_terry(told)
    each = 1.0 - (1.0 - level) / (k * (k - 1) / 2)
    above = np.zeros((k, k), dtype=bool)
    for a in range(k):
        for b in range(k):
            if a != b and fit.against(a, b, each)[1] > 0.5:
                worst = _at_worst(told, fit, a, b) if told.missing else fit
                above[a, b] = worst.against(a, b, each)[1] > 0.5
    return [(1 + int(above[:, m].sum()), k - int(above[m].sum())) for m in range(k)]


def _at_worst(preferences: Preferences, fit: BradleyTerry, a: int, b: int) -> BradleyTerry:
    """The fit if every missing verdict were the one that is worst for ``a`` against ``b``."""
    pull = fit.pull[a] - fit.pull[b]
    return bradley_terry(preferences.filled(pull[preferences.second] - pull[preferences.first]))


@dataclass(frozen=True, eq=False)
class _Newton:
    """One step, effects of position profiled out.

    Attributes:
        beta: what it adds to the strengths' contrasts, shape (k - 1,).
        gamma: what it adds to the effects, shape (n_effects,).
        information: of the contrasts, shape (k - 1, k - 1).
        profiled: the design less its mean over the judgements with the same effect, shape (n, k - 1).
        probability: that the first wins, shape (n,).
    """

    beta: FloatArray
    gamma: FloatArray
    information: FloatArray
    profiled: FloatArray
    probability: FloatArray


@dataclass(frozen=True, eq=False)
class _Votes:
    """What is fitted.

    Attributes:
        design: of the strengths, shape (n, k - 1).
        group: number of each one's effect of position, -1 for none, shape (n,).
        value: for the first, shape (n,).
        weight: shape (n,).
        effects: of position.
    """

    design: FloatArray
    group: IntArray
    value: FloatArray
    weight: FloatArray
    effects: int

    def linear(self, beta: FloatArray, gamma: FloatArray) -> FloatArray:
        """Logit of the probability that the first wins, shape (n,)."""
        return np.asarray(self.design @ beta + np.append(gamma, 0.0)[self.group])

    def likelihood(self, beta: FloatArray, gamma: FloatArray) -> float:
        """Its logarithm."""
        linear = self.linear(beta, gamma)
        return float((self.weight * (self.value * linear - np.logaddexp(0.0, linear))).sum())

    def newton(self, beta: FloatArray, gamma: FloatArray) -> _Newton:
        """The step from here."""
        p = np.asarray(expit(self.linear(beta, gamma)))
        each = self.weight * p * (1.0 - p)
        left = self.weight * (self.value - p)
        size = self._summed(each)
        size[-1] = 1.0  # of those without an effect, which keep their design
        mean = np.stack([self._summed(each * x) / size for x in self.design.T], axis=1)
        mean[-1] = 0.0
        profiled = self.design - mean[self.group]
        information = (profiled * each[:, None]).T @ self.design
        step = np.linalg.solve(information, profiled.T @ left)
        others = (self._summed(left - each * (self.design @ step)) / size)[:-1]
        return _Newton(np.asarray(step), others, 0.5 * (information + information.T), profiled, p)

    def _summed(self, what: FloatArray) -> FloatArray:
        """Over each effect, and last of all over those without one."""
        number = np.where(self.group < 0, self.effects, self.group)
        return np.bincount(number, weights=what, minlength=self.effects + 1).astype(np.float64)


def _squares(scores: FloatArray, of: IntArray) -> FloatArray:
    """Of the sums over items or judges, shape (k - 1, k - 1)."""
    names, number = np.unique(of, return_inverse=True)
    summed = np.stack([np.bincount(number, weights=x, minlength=names.size) for x in scores.T], axis=1)
    return np.asarray(summed.T @ summed)


def _maximum(votes: _Votes) -> tuple[FloatArray, FloatArray]:
    """Newton's method with halved steps; the likelihood is strictly concave."""
    beta, gamma = np.zeros(votes.design.shape[1]), np.zeros(votes.effects)
    best = votes.likelihood(beta, gamma)
    for _ in range(_STEPS):
        step, size = votes.newton(beta, gamma), 1.0
        while (
            found := votes.likelihood(beta + size * step.beta, gamma + size * step.gamma)
        ) < best and size > _EXACT:
            size /= 2.0
        beta, gamma, best = beta + size * step.beta, gamma + size * step.gamma, max(best, found)
        if size * max(np.abs(step.beta).max(), np.abs(step.gamma).max(initial=0.0)) < 1e-10:
            break
    return beta, gamma
