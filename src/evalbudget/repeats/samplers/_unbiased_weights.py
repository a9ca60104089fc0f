r"""Shares of an item's readings in its mean, fixed before they are seen: the benchmark mean stays unbiased.

A sampler that asks an item again because of what it scored makes the plain mean of its readings biased: an
item whose first scores agree is not asked again, and its luck stays in. Here the first reading of every item
is held out: nothing that is decided looks at it. Every further reading of item i gets, when it is asked,

.. math:: w_{ik} = R_i / (c_i + 1), \qquad R_i \leftarrow R_i - w_{ik}, \qquad
          c_i = \max(1, \lceil n_i B/t \rceil - n_i)

where R_i is what is left of the item's share (1 at first), n_i the readings asked of it and t those asked of
all items so far, B the budget, and so c_i the readings that the item will still get if the rest of the budget
is spent as it was so far. What is left in the end falls to the held-out reading:

.. math:: \hat\mu_i = \sum_k w_{ik} x_{ik} + R_i x_{i0}.

Given what was known when it was asked, each reading has mean mu_i and its weight is fixed; the held-out one
has mean mu_i given everything that R_i depends on. So the estimate is unbiased, whatever was decided, however
the scores are distributed, and whenever the run ends (if what ends it did not look at held-out readings
either). A reading that fails gives its weight back; if the held-out one fails, the next one asked of the item
is held out.

Where the run may end once items are known, c_i is at most what the item seems to need until then.

Where the budget is money, B is that money over the mean cost of the readings so far, without the item's own
held-out one: a cost may tell of the score, and R_i must know nothing of it.

Weights are whole multiples of 2^-50, so that they do not depend on the order in which failures come back.
"""

from __future__ import annotations

_WHOLE = 2**50


class Shares:
    """Weights of all items' readings.

    Args:
        n_items: of the benchmark.
        budget: readings that will be bought in all; None: always as many again as were asked so far.
    """

    def __init__(self, n_items: int, budget: int | None) -> None:
        self._n_items = n_items
        self._budget = budget
        self._left = [_WHOLE] * n_items
        self._held: list[int | None] = [None] * n_items  # epoch of the held-out reading
        self._flying: dict[tuple[int, int], int] = {}  # item, epoch -> weight of what is not read yet

    def of_next(
        self,
        item: int,
        epoch: int,
        n: int,
        asked: int,
        budget: int | None = None,
        most: int | None = None,
    ) -> float | None:
        """The weight of a reading about to be asked; None if it is held out.

        Args:
            item: of the reading.
            epoch: of the reading.
            n: readings asked of the item before it, failed ones not counted.
            asked: requests handed out so far for all items; 0 while every item gets the same.
            budget: readings that will be bought in all, as it looks now; None: as it looked at the start.
            most: readings that the item will still get at most, this one included; None: as many as are
                paid for.
        """
        weight = self._flying.get((item, epoch))
        if weight is not None:  # it was asked before, by an earlier run
            return weight / _WHOLE
        if self._held[item] is None or self._held[item] == epoch:
            self._held[item] = epoch
            return None
        planned = self._planned(n, asked, self._budget if budget is None else budget, most)
        weight = self._left[item] // (planned + 1)
        self._left[item] -= weight
        self._flying[item, epoch] = weight
        return weight / _WHOLE

    def _planned(self, n: int, asked: int, budget: int | None, most: int | None) -> int:
        """c_i: the readings the item will still get, this one included."""
        if budget is None:
            planned = n if most is None else most
        elif asked == 0:
            planned = budget // self._n_items - n
        else:
            planned = -(-n * budget // asked) - n
        return max(1, planned if most is None else min(planned, most))

    def assume(self, item: int, epoch: int, weight: float | None) -> None:
        """A reading had this weight when an earlier run asked it; None: it was held out."""
        if weight is None:
            self._held[item] = epoch
            return
        units = round(weight * _WHOLE)
        self._left[item] -= units
        self._flying[item, epoch] = units

    def holds(self, item: int, epoch: int) -> bool:
        """Whether this reading is held out and must not be looked at."""
        return self._held[item] == epoch

    def came_back(self, item: int, epoch: int) -> None:
        """A score came back: its weight is final."""
        self._flying.pop((item, epoch), None)

    def failed(self, item: int, epoch: int) -> None:
        """No score came back: its weight is to be given again."""
        if self._held[item] == epoch:
            self._held[item] = None
        self._left[item] += self._flying.pop((item, epoch), 0)
