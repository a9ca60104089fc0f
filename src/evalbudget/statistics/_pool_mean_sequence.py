r"""Confidence sequences for the mean of a finite pool, sharpened by predictions of the unread scores.

A pool of N items has scores S in [0, 1]; k are known, the others are drawn uniformly without replacement.
U_t is what is left before draw t, n_t the number of scores there can still be (N less what failed so far),
and f a prediction of every item, frozen before the draw. With a coefficient beta_t in [0, 1] chosen before it
too,

.. math:: r_t = S_t - \beta_t (f_t - \bar f_{U_t}), \quad
          E[r_t \mid \text{past}] = \frac{n_t \mu - \sum_{\text{read}} S}{|U_t|},

because the control variate has the conditional mean 0. So every bounded-mean test without replacement applies
with r in place of S, its range moved to :math:`[-\beta_t(f_{high} - \bar f_{U_t}),\;
1 + \beta_t (\bar f_{U_t} - f_{low})]`. beta_t is the regression slope of earlier scores on their predictions,
shrunk towards 1 by 8 pseudo-draws: useless or adversarial predictions are soon ignored, and beta = 0 or
constant predictions give the sequences without predictions.

A candidate that is wrong by delta is wrong by delta N / (N - t) about what is left, so that the gaps bet on
grow as the pool empties: with shares rho of the standard deviation sd, and g = rho sd N / (N - t),

.. math:: \lambda = \frac{g}{sd^2 + g^2 - (\rho\, sd)^2}

rises from rho / sd, the stake where no pool ends, and near its end is the one by which capital grows fastest
at the gap g.

An item that fails when drawn has no score; the mean is over those that do not fail. Then
:math:`(S - \mu) 1_{\text{has a score}}` sums to 0 over the pool, and a failed draw enters with mu in place of
S: nobody need know beforehand which items fail.

References:
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting, JRSS-B 86,
    Section 5, arXiv 2010.09686. Waudby-Smith, Stark & Ramdas (2021), RiLACS, Section 3 (control variates).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.statistics._anytime_betting import CAP, RHO
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._drawn import Drawn

_PSEUDO = 8.0
_FINEST = 2.0**-16
_SHARE = 1.0 / 400.0
"""Ends are found to this share of the empirical Bernstein width."""


@dataclass(frozen=True)
class ControlledDraws(Drawn):
    """Draws without replacement with their predictions, draw by draw.

    Attributes:
        known_count: k.
        known_sum: sum of the known scores.
        pool: N - k, number of items to draw from.
        value: S of each draw in [0, 1], nan where it failed, shape (t,).
        prediction: f of each draw, frozen before it, shape (t,).
        unseen_mean: mean of f over U_t, the drawn item included, shape (t,).
        low: at most the smallest f over U_t, shape (t,).
        high: at least the largest f over U_t, shape (t,).
    """

    known_count: int
    known_sum: float
    pool: int
    value: FloatArray
    prediction: FloatArray
    unseen_mean: FloatArray
    low: FloatArray
    high: FloatArray

    @property
    def unseen(self) -> FloatArray:
        """Number of items left before each draw, shape (t,)."""
        return np.asarray(self.pool - np.arange(self.value.size), dtype=np.float64)

    @property
    def total(self) -> float:
        """Sum of all scores read."""
        return self.known_sum + float(self.score.sum())

    @property
    def count(self) -> int:
        """Number of scores read."""
        return self.known_count + self.value.size - int(self.failed.sum())

    def before(self, x: FloatArray) -> FloatArray:
        """Sums over earlier draws, shape (t,)."""
        return np.cumsum(x) - x

    def slopes(self) -> FloatArray:
        """Beta before each draw, shape (t,), in [0, 1]."""
        read = 1.0 - self.failed
        f, s = self.prediction * read, self.score
        n = self.before(read)
        safe = np.maximum(n, 1.0)
        f1, s1 = self.before(f), self.before(s)
        both = self.before(f * s) - f1 * s1 / safe
        own = self.before(f * f) - f1 * f1 / safe
        # predictions that never differ explain nothing and cost nothing
        varied = own > 1e-12 * safe
        slope = np.divide(both, own, out=np.ones_like(own), where=varied)
        return np.asarray(np.clip((n * slope + _PSEUDO) / (n + _PSEUDO), 0.0, 1.0), dtype=np.float64)

    def limits(self) -> tuple[float, float]:
        """What no unread score in [0, 1] could leave: bounds of the mean whatever the level."""
        left = self.pool - self.value.size
        size = max(self.count + left, 1)
        slack = (size + 4) * np.finfo(np.float64).eps if left else 0.0
        return max(0.0, self.total / size - slack), min(1.0, (self.total + left) / size + slack)


@dataclass(frozen=True)
class _Terms:
    """r_t and its conditional mean, a mu - b; ``moves`` is 1 where the draw failed and mu stands in."""

    r: FloatArray
    moves: FloatArray
    a: FloatArray
    b: FloatArray
    low: FloatArray
    high: FloatArray
    guess: FloatArray
    squares: FloatArray
    bets: FloatArray

    @classmethod
    def of(cls, draws: ControlledDraws, slopes: FloatArray) -> _Terms:
        unseen, failed, score = draws.unseen, draws.failed, draws.score
        r = score - slopes * (draws.prediction - draws.unseen_mean)
        low = -slopes * (draws.high - draws.unseen_mean)
        high = 1.0 + slopes * (draws.unseen_mean - draws.low)
        # failed draws stand at the running mean, for the spread and the guess only
        filled = np.where(failed > 0, 0.0, r)
        n = draws.before(1.0 - failed)
        guess = np.clip((0.5 + draws.before(filled)) / (n + 1.0), low, high)
        after = (0.5 + np.cumsum(filled)) / (n + (1.0 - failed) + 1.0)
        off = np.where(failed > 0, 0.0, (r - after) ** 2)
        squares = (0.25 + draws.before(off)) / (n + 1.0)
        return cls(
            r=r,
            moves=failed,
            a=(draws.known_count + n + unseen) / unseen,
            b=(draws.known_sum + draws.before(score)) / unseen,
            low=low,
            high=high,
            guess=guess,
            squares=squares,
            bets=late_bets(squares, draws.pool / unseen),
        )


def late_bets(variance: FloatArray, emptied: FloatArray) -> FloatArray:
    """Stakes that grow as the pool empties, before the cap.

    Args:
        variance: of the scores read before, shape (...).
        emptied: N / (N - t) before the draw, same shape.

    Returns:
        Shape (RHO.size, ...).
    """
    at_first = RHO.reshape(-1, *[1] * variance.ndim) * np.sqrt(variance)
    gap = at_first * emptied
    return np.asarray(gap / (variance + gap * gap - at_first * at_first))


def controlled_betting(draws: ControlledDraws, alpha: float, slopes: FloatArray) -> tuple[float, float]:
    """Betting confidence sequence for the mean of the pool, at its last draw.

    The running intersection over all draws: it holds the mean at every moment with probability 1 - alpha.
    Bets are those of :func:`late_bets`, their mixture is their mean. The capital does
    not increase in the candidate mean, so each end is found by interpolation and rounded outwards, by at
    most 1/65536 or 1/200 of the width, whichever is more.

    Args:
        draws: in draw order.
        alpha: error probability.
        slopes: beta before each draw, shape (t,), as of :meth:`ControlledDraws.slopes`.

    Returns:
        Lower and upper end; the exact mean twice when all is drawn.
    """
    if draws.exhausted:
        return _exact(draws)
    low, high = draws.limits()
    if not draws.value.size:
        return low, high
    terms = _Terms.of(draws, slopes)
    first = _bernstein(terms, alpha)
    bet_low = _last_rejected(terms, 2.0 / alpha, first[0], first[1] - first[0], upper=False)
    bet_high = 1.0 - _last_rejected(terms, 2.0 / alpha, 1.0 - first[1], first[1] - first[0], upper=True)
    return _ordered(max(low, bet_low), min(high, bet_high))


def _last_rejected(terms: _Terms, threshold: float, guess: float, width: float, *, upper: bool) -> float:
    """A rejected candidate next to one that stands, counted from 0 (from 1 downwards for the upper end)."""
    tolerance = max(_FINEST, _SHARE * abs(width))
    low, high = 0.0, 1.0
    at_low = at_high = float("nan")
    x = guess
    aim = np.log(threshold)
    while high - low > tolerance:
        size = high - low
        probes = np.clip([x - 0.4 * tolerance, x + 0.4 * tolerance], low + 0.02 * size, high - 0.02 * size)
        evidence = np.log(_peak(terms, 1.0 - probes if upper else probes, upper=upper)) - aim
        for place, log in zip(probes.tolist(), evidence.tolist(), strict=True):
            if log >= 0.0 and place > low and place < high:
                low, at_low = place, log
            elif log < 0.0 and place < high:
                high, at_high = place, log
        if np.isfinite(at_low) and np.isfinite(at_high) and high - low < 0.5 * size:
            x = low + (high - low) * at_low / (at_low - at_high)
        elif np.isnan(at_high) or np.isnan(at_low):
            # no end is known yet: a step away from the guess, then wider and wider
            x = (
                min(low + 4.0 * (low - guess) + 0.25 * abs(width), 0.5 * (low + high))
                if np.isnan(at_high)
                else (max(high - 4.0 * (guess - high) - 0.25 * abs(width), 0.5 * (low + high)))
            )
        else:
            x = 0.5 * (low + high)
    return low


def _peak(terms: _Terms, candidates: FloatArray, *, upper: bool) -> FloatArray:
    """Largest capital over time against each candidate."""
    m = candidates[:, None]
    # impossible candidates count as the nearest possible one
    edge = (terms.high + terms.b) / terms.a if upper else (terms.low + terms.b) / terms.a
    m = np.minimum(m, edge) if upper else np.maximum(m, edge)
    mean = terms.a * m - terms.b
    gap = terms.r + terms.moves * m - mean
    room = np.maximum(terms.high - mean if upper else mean - terms.low, 0.0)
    if upper:
        gap = -gap
    with np.errstate(divide="ignore"):
        cap = CAP / room
    factors = np.minimum(terms.bets, cap[:, None, :]) * gap[:, None, :]
    factors += 1.0
    # inf stays inf, far beyond any threshold: no factor is below 1 - CAP, so it never meets a 0
    with np.errstate(over="ignore", under="ignore"):
        np.multiply.accumulate(factors, axis=2, out=factors)
        return np.asarray(np.maximum(factors.mean(axis=1).max(axis=1), 1.0), dtype=np.float64)


def _bernstein(terms: _Terms, alpha: float) -> tuple[float, float]:
    width = terms.high - terms.low
    t = np.arange(1, terms.r.size + 1)
    log = float(np.log(2.0 / alpha))
    bet = np.minimum(np.sqrt(2.0 * log / (terms.squares / width**2 * t * np.log1p(t))), 0.5)
    off = np.abs(terms.r - terms.guess)
    # a failed draw has the candidate itself for a score: take the farthest one
    off = np.where(terms.moves > 0, np.maximum(off, np.abs(terms.r + 1.0 - terms.guess)), off) / width
    penalty = np.cumsum(off**2 * (-np.log1p(-bet) - bet))
    weight = np.cumsum(bet / width * (terms.a - terms.moves))
    centre = np.cumsum(bet / width * (terms.r + terms.b))
    some = weight > 1e-12
    middle, margin = centre[some] / weight[some], (log + penalty[some]) / weight[some]
    low, high = float((middle - margin).max(initial=0.0)), float((middle + margin).min(initial=1.0))
    return low, high


def _exact(draws: ControlledDraws) -> tuple[float, float]:
    mean = draws.total / draws.count if draws.count else float("nan")
    return mean, mean


def _ordered(low: float, high: float) -> tuple[float, float]:
    """Where everything is rejected, span the contradicting ends."""
    return (low, high) if low <= high else (high, low)
