"""LUCB: leader and challenger are read until they can be told apart with confidence 1 - delta."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.missing import Missing
from evalbudget.races.samplers._base import BatchOptions, RacingSampler
from evalbudget.races.samplers._rounds import Note, Round, Stop, Table
from evalbudget.statistics._bounds import FloatArray

_TOLERANCE = 1e-12  # sums of the same scores in another order differ by less


@dataclass(frozen=True, kw_only=True, eq=False)
class Duel(Note):
    """What has been decided with confidence 1 - delta: best, tie or equivalent; empty before."""

    decided: str = ""


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
    note_kinds = (Duel,)

    def __init__(
        self, design: Design, *, delta: float = 0.05, margin: float = 0.0, **common: Unpack[BatchOptions]
    ) -> None:
        if not 0.0 < delta < 1.0:
            raise InvalidInputError(f"lucb got delta={delta}; give a probability, for example 0.05")
        if not (math.isfinite(margin) and margin >= 0):
            raise InvalidInputError(f"lucb got margin={margin}; give 0 or more")
        super().__init__(design, options={"delta": delta, "margin": margin}, **common)
        self.delta, self.margin = delta, margin

    def plan(self, table: Table, last: Duel | None) -> Round | Stop:
        """A batch of leader and challenger, unless they are told apart."""
        note: Duel = self.resumed(table, last)
        if last is not None:
            note = self._judged(table, note)
        if note.decided:
            return Stop(f"decided: {note.decided}", note)
        if reason := self.why_over(table, note):
            return Stop(reason, note)
        drawable = self.drawable(table, note)
        unread = drawable[table.drawn[drawable] == 0]
        if unread.size:
            return self.next_items(table, note, unread, self.batch)
        pair = np.array([model for model in self._duel(table, note) if table.drawn[model] < self._n_items])
        return self.next_items(table, note, pair if pair.size else drawable, self.batch)

    def _judged(self, table: Table, note: Duel) -> Duel:
        remaining = note.remaining
        if remaining.size <= 1:
            return note.but(decided="best") if remaining.size else note
        leader, challenger = self._duel(table, note)
        below, upper = self._bounds(table)
        lower, decided = below[leader], note.decided
        if upper[challenger] - lower <= self.margin + _TOLERANCE:
            close = [m for m in remaining.tolist() if m == leader or upper[m] > lower + _TOLERANCE]
            decided = "equivalent"
            if len(close) == 1:
                decided = "best"
                close = [m for m in remaining.tolist() if m == leader or upper[m] >= lower - _TOLERANCE]
                if len(close) > 1:  # all of them are known exactly, unless items count for none of them
                    complete = bool((table.n_read[close] == self._n_items).all())
                    decided = "tie" if complete else "equivalent"
        worse = remaining[upper[remaining] < lower - _TOLERANCE]
        return note.leaving(worse.tolist(), table.asked).but(decided=decided)

    def _duel(self, table: Table, note: Duel) -> tuple[int, int]:
        leader = self.first(np.where(table.n_read > 0, table.means, -np.inf), note.is_in)
        others = note.is_in
        others[leader] = False
        return leader, self.first(self._bounds(table)[1], others) if others.any() else leader

    def _bounds(self, table: Table) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bound of each model's mean; exact once all its items are read."""
        log = math.log(1.25 * self._n_models * max(1, table.n_finished) ** 4 / self.delta)
        drop = self.missing is Missing.DROP
        count = table.n_read if drop else table.drawn
        with np.errstate(divide="ignore", invalid="ignore"):
            radius = np.sqrt(log / (2.0 * count))
            low = np.nan_to_num(table.total / count, nan=0.5)
            given_up = np.nan_to_num((table.drawn - table.n_read) / count)
        radius[(table.drawn >= self._n_items) & (count > 0)] = 0.0
        high = low + given_up if self.missing is Missing.WORST else low
        return low - radius, high + radius
