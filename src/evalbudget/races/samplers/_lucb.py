"""LUCB: leader and challenger are read until they can be told apart with confidence 1 - delta."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.missing import Missing
from evalbudget.races.samplers._base import BatchOptions, RacingSampler, Step
from evalbudget.statistics._bounds import FloatArray

_TOLERANCE = 1e-12  # sums of the same scores in another order differ by less


class LUCB(RacingSampler):
    r"""Fixed confidence: a batch of the leader and of the one most likely to beat it, until they separate.

    With the radius :math:`\beta_i = \sqrt{\ln(5 K t^4 / (4 \delta)) / (2 n_i)}` after t rounds, the leader h
    has the largest mean and the challenger l the largest :math:`\bar S_l + \beta_l` of the others. It stops
    when :math:`\bar S_l + \beta_l - (\bar S_h - \beta_h) \le \epsilon`. A model that has read all its items
    is known exactly; models that then differ by rounding only are tied. The outcome is wrong, by more than
    margin, with a probability of at most delta; models that are worse than the leader by these bounds are
    listed as eliminated.

    Args:
        delta: probability of a wrong answer.
        margin: models this close to the best, on scores in [0, 1], count as equivalent to it.
        common: see RacingSampler; the batch is of each of the two per round.

    Raises:
        InvalidInputError: delta is no probability, margin is negative; see also RacingSampler.

    References:
        Kalyanakrishnan, Tewari, Auer & Stone (2012), PAC subset selection in stochastic multi-armed bandits,
        ICML. Hoeffding's inequality holds for items drawn without replacement too.
    """

    name = "lucb"

    def __init__(
        self, design: Design, *, delta: float = 0.05, margin: float = 0.0, **common: Unpack[BatchOptions]
    ) -> None:
        if not 0.0 < delta < 1.0:
            raise InvalidInputError(f"lucb got delta={delta}; give a probability, for example 0.05")
        if not (math.isfinite(margin) and margin >= 0):
            raise InvalidInputError(f"lucb got margin={margin}; give 0 or more")
        super().__init__(design, options={"delta": delta, "margin": margin}, **common)
        self.delta, self.margin = delta, margin
        self._decided = ""  # what has been, with confidence 1 - delta: best, tie or equivalent

    def _plan(self) -> Step | None:
        if self._decided:
            self.stop_reason = f"decided: {self._decided}"
            return None
        if self._stop_if_over():
            return None
        drawable = self._drawable()
        unread = drawable[self._drawn[drawable] == 0]
        if unread.size:
            return self._draw(unread, self.batch)
        leader, challenger = self._duel()
        pair = np.array([model for model in (leader, challenger) if self._drawn[model] < self._n_items])
        return self._draw(pair if pair.size else drawable, self.batch)

    def _finished(self, step: Step) -> None:
        remaining = self._remaining()
        if not remaining.size:
            return
        if remaining.size == 1:
            self._decided = "best"
            return
        leader, challenger = self._duel()
        below, above = self._bounds()
        lower, upper = below[leader], above
        gap = upper[challenger] - lower
        if gap <= self.margin + _TOLERANCE:
            close = [m for m in remaining.tolist() if m == leader or upper[m] > lower + _TOLERANCE]
            self._decided = "equivalent"
            if len(close) == 1:
                self._decided = "best"
                close = [m for m in remaining.tolist() if m == leader or upper[m] >= lower - _TOLERANCE]
                if len(close) > 1:  # all of them are known exactly, unless items count for none of them
                    complete = bool((self._n_read[close] == self._n_items).all())
                    self._decided = "tie" if complete else "equivalent"
        for model in remaining[upper[remaining] < lower - _TOLERANCE].tolist():
            self._leave(model)

    def _duel(self) -> tuple[int, int]:
        leader = self._first(np.where(self._n_read > 0, self._means(), -np.inf), self._in)
        others = self._in.copy()
        others[leader] = False
        return leader, self._first(self._bounds()[1], others) if others.any() else leader

    def _bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bound of each model's mean; exact once all its items are read."""
        log = math.log(1.25 * self._n_models * max(1, self._steps) ** 4 / self.delta)
        drop = self.missing is Missing.DROP
        count = self._n_read if drop else self._drawn
        with np.errstate(divide="ignore", invalid="ignore"):
            radius = np.sqrt(log / (2.0 * count))
            low = np.nan_to_num(self._sum / count, nan=0.5)
            given_up = np.nan_to_num((self._drawn - self._n_read) / count)
        radius[(self._drawn >= self._n_items) & (count > 0)] = 0.0
        high = low + given_up if self.missing is Missing.WORST else low
        return low - radius, high + radius
