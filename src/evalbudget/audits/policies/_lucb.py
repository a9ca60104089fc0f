r"""PP-LUCB as published: leader and challenger are judged and sometimes audited until their intervals part.

.. math:: \hat\theta = \bar F + \frac1N \sum \frac{A}{\pi} (Y - F), \quad
          w = \frac{\psi(N/4; d/2)}{N} + \frac{\psi(\sum R^2; d/2) + 0.45 M \log(10.4/d)}{N}

with R = (A/pi)(Y - F), M = 2 / pi_min, d = delta / K and psi the stitched boundary, its argument clipped at 1
(below about 0.7 it is not defined). Known errata, corrected by ``errata="fixed"``:

- the linear term must grow with log log v: :math:`\sqrt{k_1^2 v l + k_2^2 c^2 l^2} + k_2 c l` with
  l = 1.4 log log 2v + log(5.2/alpha), k_1 = 1.4355, k_2 = 1.2071, c = 1/pi_min;
- the two parts of w spend d each, 2 delta in all: they get d/2 each.

An arm is audited with pi = clip(lambda s, pi_min, 1), s as the :class:`Allocator` has it; lambda is such that
these rates, weighted by the pulls that each arm has so far, are rho on average. The first pull of an arm is
audited with pi_min. Before an arm has five labels, s is not known and pi is rho: the paper recommends a
uniform warm-up and gives it no length.

The paper has no labels that never come. Here R is then its midpoint over all labels, w grows by half of that
range and the sum of squares by the largest, so that the interval holds whatever the label would have been.

References:
    Ao, Chen, Gao, Li & Simchi-Levi (2026), Best arm identification with LLM judges and limited human audits,
    arXiv 2601.21471. Howard, Ramdas, McAuliffe & Sekhon (2021), Theorem 1.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evalbudget.audits.policies._config import PolicyConfig
from evalbudget.errors import Choice, InvalidInputError

K1 = (2.0**0.25 + 2.0**-0.25) / math.sqrt(2.0)
K2 = (math.sqrt(2.0) + 1.0) / 2.0


class Errata(Choice):
    """Which formulas are used."""

    LITERAL = "literal"
    FIXED = "fixed"


class Allocator(Choice):
    """What an arm's audit rate is proportional to (section 6 of the paper); rho on average."""

    UNIFORM = "uniform"
    """rho for every arm."""
    PRICE_OF_PRECISION = "price-of-precision"
    """sqrt(c_F / c_Y) times residual spread over the judge's spread: the rate itself, whatever rho is."""
    UNCERTAINTY = "uncertainty-weighted"
    """s = (1 - gap) |bias| variance: distance to the leader's mean, mean and variance of Y - F, as estimated.
    The paper names the three factors and prints no formula."""
    NEYMAN = "neyman"
    """s = sqrt(g), g = E (Y - F)^2 of the arm, as estimated."""
    ORACLE = "oracle"
    """s = sqrt(g) with the true g, which a simulation knows."""


@dataclass(frozen=True)
class LucbConfig(PolicyConfig):
    """Settings of ``pp-lucb``.

    Attributes:
        allocator: ``uniform``, ``price-of-precision``, ``uncertainty-weighted``, ``neyman`` or ``oracle``.
        rho: the audit rate aimed at.
        least_propensity: pi_min; None for rho with ``uniform`` and .01 otherwise, as the paper has it.
        errata: ``literal`` or ``fixed``.
        pulls: stop after so many in all and name the leader; None: when leader and challenger have parted.
        batch: pulls of the leader, and as many of the challenger, before the labels are waited for; 1 as
            published.
        truth: for ``oracle``: E (Y - F)^2 per system, also as JSON text.

    The others are those of :class:`PolicyConfig`.

    Raises:
        UnknownNameError: no such allocator, or neither literal nor fixed.
        InvalidInputError: a value that cannot be used.
    """

    allocator: str = Allocator.UNIFORM
    rho: float = 0.1
    least_propensity: float | None = None
    errata: str = Errata.LITERAL
    pulls: int | None = None
    batch: int = 1
    truth: tuple[float, ...] | str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        Allocator.named(self.allocator)
        Errata.named(self.errata)
        self._require_whole("batch")
        if self.pulls is not None:
            self._require_whole("pulls")
        if self.truth is not None:
            object.__setattr__(self, "truth", self._read_truth(self.truth))
        if self.n_models < 2:
            raise InvalidInputError(
                "pp-lucb compares systems and there is only one; for its mean use audit-eprocess with "
                "half_width"
            )
        if self.allocator == Allocator.PRICE_OF_PRECISION and not self.label_price > 0.0:
            raise InvalidInputError(
                "price-of-precision weighs a score against a label, whose price is 0; use another allocator, "
                "or label everything"
            )
        if not 0.0 < self.least <= self.rho <= 1.0:
            raise InvalidInputError(
                f"pp-lucb got rho={self.rho:g} and least propensity {self.least:g}; both are probabilities, "
                "the least one at most rho"
            )
        if self.allocator == Allocator.ORACLE and self.truth is None:
            raise InvalidInputError(
                "the allocator 'oracle' needs the true residual spread, which only a simulation knows; "
                "use 'neyman', which estimates it"
            )

    def _read_truth(self, given: Any) -> tuple[float, ...]:
        try:
            truth = np.asarray(json.loads(given) if isinstance(given, str) else given, dtype=np.float64)
        except (TypeError, ValueError):
            truth = np.empty(0)
        if truth.shape != (self.n_models,) or not (np.isfinite(truth) & (truth >= 0.0)).all():
            raise InvalidInputError(
                f"truth must be {self.n_models} numbers of 0 or more, also as JSON: the judge's mean squared "
                "error for each system"
            )
        return tuple(truth.tolist())

    @property
    def least(self) -> float:
        """pi_min."""
        if self.least_propensity is not None:
            return self.least_propensity
        return self.rho if self.allocator == Allocator.UNIFORM else 0.01


WARM_UP = 5
"""Labels of an arm before its residuals are relied on."""


@dataclass
class _Arm:
    n: int = 0
    f: float = 0.0
    ff: float = 0.0
    r: float = 0.0
    rr: float = 0.0
    slack: float = 0.0
    width: float = math.inf
    labels: int = 0
    off: float = 0.0
    square: float = 0.0

    @property
    def bias(self) -> float:
        """Mean of Y - F over the labels: how often an arm is audited does not depend on its scores."""
        return self.off / self.labels

    @property
    def residual(self) -> float:
        """Mean of (Y - F)^2 over the labels."""
        return self.square / self.labels


class LucbState:
    """What PP-LUCB knows; scalar arithmetic, O(K) per step.

    Args:
        config: settings; the number of items and the labels allowed are not looked at.
    """

    def __init__(self, config: LucbConfig) -> None:
        self.config = config
        self._arms = [_Arm() for _ in range(config.n_models)]

    @property
    def pulls(self) -> int:
        """Judge scores taken in."""
        return sum(arm.n for arm in self._arms)

    def propensity(self, arm: int) -> float:
        """Pi of the next pull, before the coin is thrown."""
        a = self._arms[arm]
        if not a.n:
            return self.config.least
        if self.config.allocator == Allocator.UNIFORM or not self._is_known(a):
            return self.config.rho
        if self.config.allocator == Allocator.PRICE_OF_PRECISION:
            spread = max(a.ff / a.n - (a.f / a.n) ** 2, 1e-6)
            wanted = math.sqrt(self.config.judge_price / self.config.label_price * a.residual / spread)
        else:
            sizes = self._sizes()
            if not any(sizes.values()):
                return self.config.rho
            wanted = sizes[arm] * self._level(sizes) if sizes[arm] > 0.0 else 0.0
        return min(1.0, max(self.config.least, wanted))

    def _is_known(self, a: _Arm) -> bool:
        return a.labels >= WARM_UP or self.config.allocator == Allocator.ORACLE

    def _sizes(self) -> dict[int, float]:
        """S of every arm beyond its warm-up."""
        known = [k for k, a in enumerate(self._arms) if a.n and self._is_known(a)]
        truth = self.config.truth
        if self.config.allocator == Allocator.ORACLE and isinstance(truth, tuple):
            return {k: math.sqrt(truth[k]) for k in known}
        if self.config.allocator == Allocator.NEYMAN:
            return {k: math.sqrt(self._arms[k].residual) for k in known}
        means = self.means()
        leader = max(mean for mean in means if not math.isnan(mean))
        return {k: self._uncertainty(self._arms[k], leader - means[k]) for k in known}

    def _uncertainty(self, a: _Arm, gap: float) -> float:
        variance = max(a.residual - a.bias**2, 0.0)
        return max(1.0 - gap, 0.0) * abs(a.bias) * variance

    def _level(self, sizes: Mapping[int, float]) -> float:
        """Lambda: the pulls' average of clip(lambda s, pi_min, 1), piecewise linear in lambda, is rho."""
        pulls = sum(self._arms[k].n for k in sizes)
        bends: list[tuple[float, float]] = []
        for k, s in sizes.items():
            if s > 0.0:
                slope = s * self._arms[k].n / pulls
                bends += [(self.config.least / s, slope), (1.0 / s, -slope)]
        average, slope, at = self.config.least, 0.0, 0.0
        for bend, change in sorted(bends):
            if slope > 0.0 and average + slope * (bend - at) >= self.config.rho:
                return at + (self.config.rho - average) / slope
            average, slope, at = average + slope * (bend - at), slope + change, bend
        return at

    def learn(self, arm: int, judge: float, propensity: float, label: float | None) -> None:
        """Take one pull in; the label is None where no coin asked for one, nan where it never came."""
        a = self._arms[arm]
        a.n += 1
        a.width = math.nan
        a.f += judge
        a.ff += judge * judge
        if label is not None and math.isnan(label):
            a.r += (0.5 - judge) / propensity
            a.rr += (max(judge, 1.0 - judge) / propensity) ** 2
            a.slack += 0.5 / propensity
        elif label is not None:
            off = label - judge
            a.r += off / propensity
            a.rr += (off / propensity) ** 2
            a.labels += 1
            a.off += off
            a.square += off * off

    def means(self) -> list[float]:
        """Theta of each arm; nan before its first pull."""
        return [(a.f + a.r) / a.n if a.n else math.nan for a in self._arms]

    def widths(self) -> list[float]:
        """W of each arm; infinite before its first pull."""
        d = self.config.delta / len(self._arms)
        for a in self._arms:
            if math.isnan(a.width):  # only the arms pulled since have changed
                a.width = self._width(a, d)
        return [a.width for a in self._arms]

    def _width(self, a: _Arm, d: float) -> float:
        if self.config.errata == Errata.LITERAL:
            first = _psi(a.n / 4.0, d / 2.0)
            linear = 0.45 * 2.0 / self.config.least * math.log(10.4 / d)
            return (first + _psi(a.rr, d / 2.0) + linear + a.slack) / a.n
        # half of d for each part, half of that for each side
        return (_psi(a.n / 4.0, d / 4.0) + _gamma(a.rr, d / 4.0, 1.0 / self.config.least) + a.slack) / a.n

    def duel(self) -> tuple[int, int, bool]:
        """Leader, challenger, and whether they have parted; arms without a pull come first."""
        for k, a in enumerate(self._arms):
            if not a.n:
                return k, (k + 1) % len(self._arms), False
        theta, w = self.means(), self.widths()
        leader = max(range(len(theta)), key=theta.__getitem__)
        upper = [t + x if k != leader else -math.inf for k, (t, x) in enumerate(zip(theta, w, strict=True))]
        challenger = max(range(len(theta)), key=upper.__getitem__)
        return leader, challenger, theta[leader] - w[leader] > upper[challenger]


def _psi(v: float, alpha: float) -> float:
    v = max(v, 1.0)
    return 1.7 * math.sqrt(v * (math.log(math.log(2.0 * v)) + 0.72 * math.log(5.2 / alpha)))


def _gamma(v: float, alpha: float, c: float) -> float:
    """Sub-gamma stitched boundary, scale c."""
    v = max(v, 1.0)
    el = 1.4 * math.log(math.log(2.0 * v)) + math.log(5.2 / alpha)
    return math.sqrt(K1**2 * v * el + (K2 * c * el) ** 2) + K2 * c * el
