r"""Who is proved the best of several models that read the same items: e-values of paired differences.

Models answer the items of a finite pool in one common random order, scores scaled to [0, 1]. For a model i
and an opponent j let :math:`d_t = (x_{jt} - x_{it}) / 2` on item t, in [-1/2, 1/2], and S the sum of d over
the items before. If "i is at least as good as j" (its mean over the pool is not below that of j), the N - t
items not read yet sum to at most -S, so the next d has a conditional mean of at most

.. math:: m_t = \frac{-S}{N - t}

and for a stake :math:`0 \le \lambda \le .9 / (1/2 + m_t)` chosen before the item is read, the capital
:math:`\prod_t (1 + \lambda_t (d_t - m_t))` is a nonnegative supermartingale that starts at 1 (an e-process):
it ever reaches 1/a with a probability of at most a. It grows when i is worse than j, the faster the emptier
the pool is, for m_t falls away from the mean of d. Items known before the draws, such as chosen anchors,
enter S only.

Where a score is missing, d takes its least value for the claim that i is worse
(:class:`~evalbudget.missing.Missing`):
x_j counts 0 and x_i counts 1. Then d is at most what it would be with all scores there, and what is proved
holds whatever the missing ones are. Or a missing score counts 0 for both; or the item counts as d = 0, which
makes the statement one about the items that failed for neither.

Two rules are built from it.

:class:`BestProof`, for models that all read on, item by item, until they are dropped. Against "i is the best"
one capital is bet, on each item against the one opponent that leads i most clearly by the items before. Under
"i is the best" every opponent's bet is fair or worse, whichever is chosen on the past, so no error is divided
among pairs: i is dropped at 2/delta. The last one left is proved the best. If one model is the best, it is
dropped with a probability of at most delta/2; if several are exactly tied at the top, one of them is named as
the only best with a probability of at most delta (two tied models have to be dropped with delta/2 each).
Both hold at whatever moment one looks.

:func:`pairwise_evidence`, for models that have read beginnings of the order of any length, chosen by whatever
rule, even one that knows the later scores of the other. It bets each pair by itself, along the items both
read; i is beaten once its evidence against some opponent reaches max(n_models - 1, 2) / delta. Only the
n_models - 1 pairs of a best one can be wrong, so a best one is ever called beaten with a probability of at
most delta. It needs somewhat more items (a fifth more on recorded matrices) and is right for every sampler
whose models share one order.

Stakes are a mixture, so that no gap need be known: :math:`\lambda = g / (v + g^2)`, v being the variance of
earlier d, with gaps g of fixed shares of the standard deviation that grow by N / (N - t) as the pool empties,
and with the gap that earlier items show.

Example::

    proof = BestProof(n_models=3, pool=200, delta=0.05)
    while not proof.decided:
        proof.update(scores_of_next_item)  # shape (3,), nan where failed; dropped ones are not looked at
    proof.winner  # index; None if several are left at the end of the pool: exactly tied if proof.tied

References:
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting, JRSS-B 86,
    Section 5 (without replacement). Ramdas, Grunwald, Vovk & Shafer (2023), Game-theoretic statistics and
    safe anytime-valid inference, Statistical Science 38 (Ville's inequality).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Self

import numpy as np
from numpy.typing import NDArray

from evalbudget.errors import InvalidInputError
from evalbudget.missing import Missing
from evalbudget.statistics._bounds import FloatArray, IntArray

_SHARES = np.array([0.4, 0.2, 0.1, 0.05])
"""Gaps bet on, in standard deviations of d at the start of the pool."""
_LOG_WEIGHT = np.log(np.array([1.0, 1.0, 1.0, 1.0, 4.0]) / 8.0)
"""Of the capital at the start; the last is bet on the gap that earlier items show."""
_PSEUDO = 10.0
"""Items without a difference that the observed gap is shrunk by."""
_SPREAD = 0.25**2
"""Variance of d before the first item, worth one item."""
_MOST = 0.9
"""Share of the capital that one item may cost."""
_EXACT = 1e-9
"""Sums of the same scores in another order differ by less."""
_PAIRS = 1 << 20
"""Worked on at once."""


class BestProof:
    """Sequential elimination: all contenders read the same items in one random order.

    Whoever feeds it decides nothing: which models count as contenders, and against whom each is bet, follows
    from the scores of the items before. Scores may be read ahead; they count when their item's turn comes.

    Args:
        n_models: number of models.
        pool: N, items in the random order.
        delta: probability that a model is named as the only best which is not.
        known: scores of items that are not in the pool, in [0, 1] or nan, shape (n_models, k).
        among: models that take part; None for all. The others count as dropped from the start.
        missing: what a score that is nan counts as.

    Attributes:
        read: number of items taken in.
        dropped_at: ``read`` when each model was dropped, -1 while it is a contender, shape (n_models,).

    Raises:
        InvalidInputError: no models, an empty pool, delta is no probability, or known of another shape.
    """

    def __init__(
        self,
        n_models: int,
        pool: int,
        *,
        delta: float = 0.05,
        known: FloatArray | None = None,
        among: Iterable[int] | None = None,
        missing: Missing = Missing.WORST,
    ) -> None:
        if n_models < 1 or pool < 0:
            raise InvalidInputError(
                f"{n_models} models and {pool} items; a proof needs a model and no fewer than 0"
            )
        self._threshold = np.log(2.0 / check_delta(delta))
        self.delta, self.pool, self.missing = delta, pool, missing
        self.read = 0
        self.dropped_at: IntArray = np.full(n_models, -1, dtype=np.int64)
        self._in: IntArray = np.arange(n_models)
        if among is not None:
            self._in = np.array(sorted(among), dtype=np.int64)
            self.dropped_at[~np.isin(np.arange(n_models), self._in)] = 0
        m = self._in.size
        self._log_capital: FloatArray = np.repeat(_LOG_WEIGHT[:, None], m, axis=1)
        self._known: FloatArray = np.zeros((m, m))
        if known is not None:
            if known.ndim != 2 or known.shape[0] != n_models:
                raise InvalidInputError(f"known scores have shape {known.shape}; give ({n_models}, items)")
            known = known[self._in]
            if known.shape[1]:
                self._known = _sums_of_differences(known, missing)
        self._sum = np.zeros((m, m))  # of d over the pool, [i, j]
        self._squares = np.zeros((m, m))  # of d about its running mean
        self._drop(self._impossible())

    def __copy__(self) -> Self:
        """Another one that may be updated while this one stays."""
        other = object.__new__(type(self))
        changed = ("dropped_at", "_log_capital", "_sum", "_squares")
        vars(other).update(vars(self) | {name: getattr(self, name).copy() for name in changed})
        return other

    @property
    def contenders(self) -> IntArray:
        """Models not dropped, indices."""
        return self._in

    @property
    def exhausted(self) -> bool:
        """Whether every item of the pool was taken in, so that means are known exactly."""
        return self.read >= self.pool

    @property
    def tied(self) -> bool:
        """Whether the contenders are proved to be exactly tied.

        Not so where a missing score may make one of them better, or each is behind another on the items both
        answered.
        """
        return (
            self.exhausted and self._in.size > 1 and bool((np.abs(self._sum + self._known) <= _EXACT).all())
        )

    @property
    def decided(self) -> bool:
        """Whether nothing is left to find out."""
        return self._in.size <= 1 or self.exhausted

    @property
    def winner(self) -> int | None:
        """The one that is proved the best; None while there are several, or when they are tied."""
        return int(self._in[0]) if self._in.size == 1 else None

    def update(self, scores: FloatArray) -> None:
        """Take in the next item of the order.

        Args:
            scores: in [0, 1], shape (n_models,); nan where the model failed. Those of models that were
                dropped are not looked at.

        Raises:
            InvalidInputError: another shape, a contender's score outside [0, 1], or the pool is used up.
        """
        scores = np.asarray(scores, dtype=np.float64)
        if scores.shape != self.dropped_at.shape:
            raise InvalidInputError(
                f"scores of one item have shape {scores.shape}; give one score for each of the "
                f"{self.dropped_at.size} models"
            )
        if self.exhausted:
            raise InvalidInputError(f"all {self.pool} items were taken in; there is no further one")
        x = scores[self._in]
        if ((x < 0.0) | (x > 1.0)).any():
            raise InvalidInputError("a score is outside 0 to 1; scale scores by their declared range first")
        for rows in _row_blocks(self._in.size):
            d = _differences(x, rows, self.missing)
            if self._in.size > 1:
                self._bet(rows, d)
            total, squares = self._sum[rows], self._squares[rows]
            before = total / (self.read + 1.0)
            total += d
            squares += (d - before) * (d - total / (self.read + 2.0))
        self.read += 1
        log = np.logaddexp.reduce(self._log_capital, axis=0)
        self._drop((log >= self._threshold) | self._impossible())

    def _bet(self, rows: slice, d: FloatArray) -> None:
        total, known = self._sum[rows], self._known[rows]
        spread = (_SPREAD + self._squares[rows]) / (self.read + 1.0)
        lead = (total + known) / np.sqrt(spread)
        row = np.arange(len(lead))
        lead[row, rows.start + row] = -np.inf  # nobody leads himself
        against = (row, lead.argmax(axis=1))
        mean = -(total[against] + known[against]) / (self.pool - self.read)
        stakes = _stakes(total[against], spread[against], mean, self.read, self.pool)
        self._log_capital[:, rows] += np.log1p(stakes * (d[against] - np.clip(mean, -0.5, 0.5)))

    def _impossible(self) -> NDArray[np.bool_]:
        """Who cannot be the best however the items left turn out; at the end, everybody behind."""
        ahead = np.full(self._in.size, -np.inf)
        for rows in _row_blocks(self._in.size):
            ahead[rows] = (self._sum[rows] + self._known[rows]).max(axis=1, initial=-np.inf)
        return np.asarray(ahead > 0.5 * (self.pool - self.read) + _EXACT)

    def _drop(self, which: NDArray[np.bool_]) -> None:
        # where cells failed, each can be behind another on the items both answered: then nobody is dropped
        if which.any() and not which.all():
            self._remove(which)

    def _remove(self, which: NDArray[np.bool_]) -> None:
        self.dropped_at[self._in[which]] = self.read
        keep = ~which
        self._in = self._in[keep]
        self._log_capital = self._log_capital[:, keep]
        both = np.ix_(keep, keep)
        self._sum = self._sum[both]
        self._squares = self._squares[both]
        self._known = self._known[both]


def pairwise_evidence(
    scores: FloatArray,
    lengths: IntArray,
    pool: int,
    *,
    known: FloatArray | None = None,
    opponents: IntArray | None = None,
    missing: Missing = Missing.WORST,
) -> FloatArray:
    """Evidence that models are not the best, for models that have read beginnings of one random order.

    Args:
        scores: in the common order, in [0, 1], nan where failed, shape (n_models, T); what stands beyond a
            model's length is not looked at.
        lengths: how many items of the order each model has read, shape (n_models,), at most T.
        pool: N, items in the random order.
        known: scores of items that are not in the pool, in [0, 1] or nan, shape (n_models, k).
        opponents: models to look at as opponents; None for all. Which ones are looked at may follow from the
            scores: the others are only left unused.
        missing: what a score that is nan counts as.

    Returns:
        Largest capital so far against "the model is at least as good as the opponent", over all opponents
        looked at, shape (n_models,). A best one ever gets max(n_models - 1, 2) / delta with less than delta.

    Raises:
        InvalidInputError: shapes do not match.
    """
    m = scores.shape[0]
    if scores.ndim != 2 or lengths.shape != (m,) or (lengths > min(scores.shape[1], pool)).any():
        raise InvalidInputError(
            f"scores of shape {scores.shape}, lengths of shape {lengths.shape} and a pool of {pool} do not "
            "belong together; give one length per model, at most the items there are"
        )
    evidence: FloatArray = np.ones(m)
    for j in range(m) if opponents is None else opponents.tolist():
        log = _against(scores, lengths, pool, int(j), known, missing)
        log[j] = -np.inf
        with np.errstate(over="ignore"):
            evidence = np.maximum(evidence, np.exp(log))
    return evidence


def _against(
    scores: FloatArray, lengths: IntArray, pool: int, j: int, known: FloatArray | None, missing: Missing
) -> FloatArray:
    """Log of the largest capital against "i is at least as good as j", of every i; inf where certain."""
    T = int(lengths[j])
    start = np.zeros(scores.shape[0])
    if known is not None:
        low, high = missing.ends(known)
        start = np.nan_to_num((low[j] - high) / 2.0).sum(axis=1)
    both = np.minimum(lengths, T)
    low, high = missing.ends(scores[:, :T])
    d = np.nan_to_num((low[j] - high) / 2.0)
    t = np.arange(T)
    d[t >= both[:, None]] = 0.0
    after = np.cumsum(d, axis=1)
    before = after - d
    off = (d - before / (t + 1.0)) * (d - after / (t + 2.0))
    spread = (_SPREAD + np.cumsum(off, axis=1) - off) / (t + 1.0)
    mean = -(before + start[:, None]) / (pool - t)
    stakes = _stakes(before, spread, mean, t, pool)
    stakes *= d - np.clip(mean, -0.5, 0.5)
    capital = np.log1p(stakes, out=stakes).cumsum(axis=2)
    log = np.logaddexp.reduce(capital + _LOG_WEIGHT[:, None, None], axis=0)
    log[t >= both[:, None]] = -np.inf
    certain = after + start[:, None] > 0.5 * (pool - t - 1.0) + _EXACT
    log[certain & (t < both[:, None])] = np.inf
    return np.asarray(log.max(axis=1, initial=0.0))


def _stakes(
    total: FloatArray, spread: FloatArray, mean: FloatArray, read: IntArray | int, pool: int
) -> FloatArray:
    """Lambda of each part of the mixture, shape (parts, ...), from what is known before the item."""
    left = pool - read
    fixed = _SHARES.reshape(-1, *[1] * spread.ndim) * np.sqrt(spread) * (pool / left)
    shown = np.maximum(total / (read + _PSEUDO) - mean, 0.0)
    gap = np.concatenate([fixed, shown[None]])
    room = np.maximum(0.5 + np.clip(mean, -0.5, 0.5), 1e-12)
    return np.asarray(np.minimum(gap / (spread + gap * gap), _MOST / room))


def _differences(x: FloatArray, rows: slice, missing: Missing) -> FloatArray:
    """d[i, j] = (x_j - x_i) / 2 of the rows i."""
    if not np.isnan(x).any():
        return (x[None, :] - x[rows, None]) / 2.0
    low, high = missing.ends(x)
    return np.nan_to_num((low[None, :] - high[rows, None]) / 2.0)


def _sums_of_differences(x: FloatArray, missing: Missing) -> FloatArray:
    """The same of several items, shape (n_models, items), added up."""
    low, high = missing.ends(x)
    of_low, of_high = (~np.isnan(low)).astype(np.float64), (~np.isnan(high)).astype(np.float64)
    return np.asarray((of_high @ np.nan_to_num(low).T - np.nan_to_num(high) @ of_low.T) / 2.0)


def _row_blocks(m: int) -> Iterator[slice]:
    """Rows of pairs of m models, a few at a time: what is computed on the way needs little memory."""
    size = max(1, _PAIRS // max(m, 1))
    return (slice(first, min(first + size, m)) for first in range(0, m, size))


def check_delta(delta: float) -> float:
    """Return ``delta`` if it is a probability strictly between 0 and 1.

    Raises:
        InvalidInputError: it is not.
    """
    if not 0.0 < delta < 1.0:
        raise InvalidInputError(f"delta={delta:g} is no probability of error; give for example 0.05")
    return delta
