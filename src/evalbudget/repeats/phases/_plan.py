"""What to ask next of the items of one model, as a function of what is known; see :class:`Phases`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.repeats._objective import Objective
from evalbudget.repeats._rounds import Note, Readings, Round, Wait
from evalbudget.repeats.phases._counts import FIRST, Pool, equal_counts, next_end, rest_in_order
from evalbudget.repeats.phases._spread import Scores, spread_of
from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray
from evalbudget.statistics._judge_effects import judge_effects

FEWEST_ITEMS = 5
"""Below it variances of items say less than they cost."""
_CHEAPEST = 0.01
"""Of the mean price: what is nearly free is not asked without end."""
_UNTIL = 4
"""Of what was read before, a phase is that part where a run ends once items are known."""


@dataclass(frozen=True, slots=True)
class Phases:
    r"""Phases that double: each is planned from those before it, so that every phase's own mean is unbiased.

    Phase 0 reads every item twice. Each further phase is as long as all before it, gives every item at least
    one reading, and the rest as :func:`~evalbudget.repeats.phases._counts.counts` says. Its head, one reading
    of each item, needs no plan and can be handed out while the last of the phase before comes in; the rest is
    planned once 95% of the phases before are in, without looking at the head.

    Where fewer than two readings of each item can be paid for, or there are fewer than five items, all are
    asked equally often, in one phase.

    A run that ends once items are known has phases of a quarter of what was read before, at least one reading
    of each item, and the rest is of items that are not known yet.

    Attributes:
        n_items: K.
        seed: of all that is random.
        weights: of the benchmark mean, shape (n_items,).
        first: readings of every item in the first phase.
        objective: what is minimised; None for the benchmark mean on two values, the worst item on others.
        scores: the model of how readings differ; None for what suits the scores.
        n_raters: judges that take turns; what they differ by is taken out of scores before these decide.
        until_known: whether the run ends once items are known.
    """

    n_items: int
    seed: int
    weights: FloatArray
    first: int = FIRST
    objective: Objective | None = None
    scores: Scores | None = None
    n_raters: int = 1
    until_known: bool = False

    def plan(self, table: Readings, last: Note | None) -> Round | Wait:
        """The next round, or how long to wait for it.

        Args:
            table: what is known; at least one item is open.
            last: the note of the round before; None at the start.
        """
        if last is None or (last.phase == 0 and self._is_equal(last.end)):
            return self._sweeps(table, 0 if last is None else last.end)
        if last.is_head:
            return self._rest(table, last)
        begin = table.read_until(last.phase)
        head = _shuffled(table.is_open, self._rng(last.phase + 1, begin))
        end = self._end(table, begin)
        part = Note(last.phase + 1, begin, end, is_head=end - begin > head.size)
        return Round(head[: end - begin], part)

    def _is_equal(self, read: int) -> bool:
        return self.n_items < FEWEST_ITEMS or read < self.first * self.n_items

    def _sweeps(self, table: Readings, begin: int) -> Round:
        """Readings of all items, equally many."""
        few = table.expected is not None and table.expected < self.first * self.n_items
        sweeps = 1 if few else self.first - begin // self.n_items
        if self.n_items < FEWEST_ITEMS:
            sweeps = max(self.first, self._step(begin) // self.n_items)
            if table.expected is not None:
                sweeps = min(sweeps, (table.expected - table.read_until(0)) // int(table.is_open.sum()))
        rng = self._rng(0, begin)
        items = np.concatenate([rng.permutation(self.n_items) for _ in range(max(sweeps, 1))])
        return Round(items, Note(0, 0, begin + items.size))

    def _step(self, begin: int) -> int:
        """Readings of a phase after so many."""
        return max(self.n_items, begin // _UNTIL) if self.until_known else begin

    def _end(self, table: Readings, begin: int) -> int:
        step = self._step(begin)
        if table.expected is None or not table.left:  # also where more are paid for than was said
            return begin + step
        # where more calls fail than did, what is left is one phase
        return next_end(begin, step, max(table.expected, begin + min(table.left, self.n_items)), self.n_items)

    def _rest(self, table: Readings, head: Note) -> Round | Wait:
        """What the head's phase has besides one reading of every item."""
        missing = table.missing_before(head.phase)
        if missing:
            return Wait(table.settled + missing)
        items = np.flatnonzero(table.is_open & ~table.is_known)
        size = head.end - head.begin - int((table.is_open & table.is_known).sum())
        rest = head._replace(is_head=False)
        if size <= items.size or not items.size:
            return Round(items[:0], rest)
        rng = self._rng(head.phase, head.begin + 1)
        found = self._counts(table, head.phase, items, size)
        if found is None:
            found = equal_counts(size, items.size, rng)
        return Round(items[rest_in_order(found, rng)], rest)

    def _counts(self, table: Readings, phase: int, items: IntArray, size: int) -> IntArray | None:
        """Of a phase, by the readings of those before it."""
        there = (table.phase < phase) & np.isfinite(table.value)
        item, value, scores = table.item[there], table.value[there], self.scores
        two = np.unique(value).size <= 2
        if self.n_raters > 1:
            value = value - judge_effects(item, table.rater[there], value, self.n_raters)[table.rater[there]]
            scores = scores or (Scores.LEVELS if two else None)
        spread = spread_of(item, value, self.n_items, scores)
        if spread is None:
            return None
        read = np.bincount(item, minlength=self.n_items)[items]
        pool = Pool(spread.of(items), read, self.weights[items], self._price(table, phase, items))
        return pool.counts(size, self.objective or (Objective.MEAN if two else Objective.WORST_ITEM))

    def _price(self, table: Readings, phase: int, items: IntArray) -> FloatArray | None:
        """Mean cost of each item's readings before this phase, over the mean of these; None if all alike."""
        if table.cost is None:
            return None
        there = (table.phase < phase) & ~table.under_way
        calls = np.bincount(table.item[there], minlength=self.n_items)[items]
        paid = np.bincount(table.item[there], table.cost[there], self.n_items)[items]
        asked = paid > 0.0
        if not asked.any():
            return None
        mean = paid[asked] / calls[asked]
        price = np.ones(items.size)
        price[asked] = np.maximum(mean / mean.mean(), _CHEAPEST)
        return None if np.ptp(price) < 1e-9 else price / price.mean()

    def _rng(self, phase: int, place: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, phase, place])


def _shuffled(is_open: BoolArray, rng: np.random.Generator) -> IntArray:
    return rng.permutation(np.flatnonzero(is_open))
