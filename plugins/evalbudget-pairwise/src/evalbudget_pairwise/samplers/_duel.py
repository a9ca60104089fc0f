"""duel: the leader against whoever may still beat it."""

from __future__ import annotations

import numpy as np

from evalbudget.cells import Stop
from evalbudget.statistics import FloatArray
from evalbudget_pairwise._proof import beats
from evalbudget_pairwise.samplers._base import Note, PairSampler, Round, Table

_PSEUDO = 2.0
"""Comparisons at a half that a win rate is shrunk by."""
_WIDE = 2.0
"""Standard errors up to which an opponent may still be better."""
_VARIANCE = 0.25
"""Of one value at most."""
_SETTLED = 0.05
"""Error at which a pair counts as settled: what is asked next does not depend on ``delta``."""


class Duel(PairSampler):
    """Compares the leader with its strongest challenger, until the leader is proved to beat everyone.

    All pairs get a batch first. The leader is then, of the models that are not proved to be beaten, the one
    with the largest mean win rate; its challenger is, of the opponents it is not proved to beat, the one
    whose win rate against it reaches highest, two standard errors above the estimate; this pair is asked
    next. It is LUCB's rule (the best, and the one that may be better) on win rates. Once the leader is
    proved, or has no comparisons left, the pair that was compared least is next, which serves the ranking.

    References:
        Kalyanakrishnan, Tewari, Auer & Stone (2012), PAC subset selection in stochastic multi-armed bandits
        (LUCB). Zoghi, Whiteson, Munos & de Rijke (2014), Relative upper confidence bound for the K-armed
        dueling bandit problem.
    """

    name = "duel"

    def plan(self, table: Table, last: Note | None) -> Round | Stop:
        """The leader against its challenger, once every pair had a batch."""
        note = self.looked(table, last)
        if reason := self.why_over(table, note):
            return Stop(reason)
        left = table.open
        new = [pair for pair in left if not table.begun[pair]]
        if new:
            return Round(dict.fromkeys(new, self.batch), note)
        pair = self._deciding(table, note)
        if pair is None:
            pair = min(left, key=lambda each: (table.begun[each], each))
        return Round({pair: self.portion(table, pair)}, note)

    def _deciding(self, table: Table, note: Note) -> int | None:
        """The leader against its strongest challenger; None if that is settled."""
        proved = beats(note.log, _SETTLED)
        rate, error = self._rates(table)
        contenders = np.flatnonzero(proved.sum(axis=0) == 0.0)
        if not contenders.size:
            return None
        mean = rate.sum(axis=1) / (self.n_models - 1)  # the diagonal is 0
        leader = int(contenders[np.argmax(mean[contenders])])
        reach: dict[int, float] = {}
        for pair in table.open:
            if leader in self.pairs[pair]:
                other = sum(self.pairs[pair]) - leader
                if not proved[leader, other]:
                    reach[pair] = float(rate[other, leader] + _WIDE * error[other, leader])
        return min(reach, key=lambda pair: (-reach[pair], pair)) if reach else None

    def _rates(self, table: Table) -> tuple[FloatArray, FloatArray]:
        """Win rate of the row's model against the column's, and its standard error."""
        rate, error = np.zeros((2, self.n_models, self.n_models))
        for pair, (a, b) in enumerate(self.pairs):
            _, a_first, value = table.of(pair)
            sides = [value[a_first].tolist(), value[~a_first].tolist()]
            means = [(sum(side) + 0.5 * _PSEUDO / 2.0) / (len(side) + _PSEUDO / 2.0) for side in sides]
            rate[a, b] = 0.5 * (means[0] + means[1])
            rate[b, a] = 1.0 - rate[a, b]
            error[a, b] = error[b, a] = np.sqrt(_VARIANCE / (value.size + _PSEUDO))
        return rate, error
