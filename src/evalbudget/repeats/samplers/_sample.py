"""A random sample of the items, each read once: for a budget below a reading of every item."""

from __future__ import annotations

import heapq
from collections import Counter
from hashlib import sha256
from typing import Unpack

import numpy as np

from evalbudget.design import Cell, Design
from evalbudget.repeats.samplers._heap import UrgencyHeap
from evalbudget.repeats.samplers._urgency import UrgencySampler
from evalbudget.sampler import Allocation, Eligible, SamplerOptions


class Sample(UrgencySampler):
    r"""Every item once, in a random order of which every prefix is a proportional sample; then ``uniform``.

    Strata are the design's ``categories``; without any, all items are one. Items of stratum h stand in a
    random order, and the next one is of the stratum with the smallest

    .. math:: (a_h + u_h) / N_h, \qquad u_h \sim U(0, 1),

    a_h being its items asked so far and N_h its size. So wherever a budget or an outage ends the run, a_h is
    within one of its share of what was asked, and every item was as likely to be among it as any other, those
    of the smallest strata too. An item that fails is asked again,
    and once it is given up the next one of its stratum takes its place. But where more items of a stratum are
    given up than are read, those above that count in a_h: a kind of items that can not be scored must not eat
    up the budget.

    Only when every open item was asked are items asked a second time. With n items, r readings of each, the
    error of the mean of all N has the variance

    .. math:: \sigma^2_{\text{item}} \Big(\frac1n - \frac1N\Big) + \frac{\sigma^2_{\text{repeat}}}{n r} ,

    and n r is the budget: the second term is what it is, and the first one falls with n. A further item
    always tells more of the mean than a second reading of an old one.

    Args:
        design: one model.
        once: ask no item a second time, for scores that would be the same again.
        common: see UrgencySampler; the seed is of the order.

    References:
        Madow & Madow (1944), systematic sampling with a random start, in every stratum.
    """

    name = "sample"
    allocation = Allocation.FIXED

    def __init__(self, design: Design, *, once: bool = False, **common: Unpack[SamplerOptions]) -> None:
        labels = design.categories or ("",) * design.n_items
        digest = sha256("\0".join(labels).encode()).hexdigest()[:16] if design.categories else None
        super().__init__(design, options={"strata": digest}, **common)
        del self.options["warmup"]  # there is none
        if once:
            self.options["once"] = True
        self.fixed_repeats = 0
        names = {label: number for number, label in enumerate(sorted(set(labels)))}
        self._stratum = [names[label] for label in labels]
        counts = Counter(self._stratum)
        self._size = [counts[number] for number in range(len(names))]
        self._start = np.random.default_rng([self.seed, 1]).random(len(names)).tolist()
        self._asked_of = [0] * len(names)  # items asked and not failed
        self._read_of = [0] * len(names)  # items with a score
        self._given_up: list[set[int]] = [set() for _ in names]  # without one
        self._waiting: list[list[tuple[int, int]]] = [[] for _ in names]  # rank, item; heaps
        self._rank_of = [0] * design.n_items
        for rank, item in enumerate(self._order):
            self._rank_of[item] = rank
            self._waiting[self._stratum[item]].append((rank, item))  # ascending: a heap as it is
        self._strata = UrgencyHeap(list(range(len(names))))
        for number in range(len(names)):
            self._place_stratum(number)
        self._heap = self._ranked(self._spread())
        self._fill()

    @property
    def minimum_readings(self) -> int:
        """One: a sample may be as small as it likes."""
        return 1

    @property
    def due(self) -> Cell | None:
        """The next item that was never read: passed over for a cheaper one, it would be less likely drawn."""
        stratum = self._strata.peek()
        item = None if stratum is None else self._first_unread(stratum, None)
        return None if item is None else self._cell(item)

    def _spread(self) -> list[int]:
        """All items in the order in which they are asked if none fails."""
        found = [
            ((number + self._start[stratum]) / self._size[stratum], item)
            for stratum, waiting in enumerate(self._waiting)
            for number, (_, item) in enumerate(waiting)
        ]
        return [item for _, item in sorted(found)]

    def _next(self, eligible: Eligible | None) -> Cell | None:
        self._check_raters()
        stratum = self._strata.peek(
            None if eligible is None else lambda number: self._first_unread(number, eligible) is not None
        )
        item = None if stratum is None else self._first_unread(stratum, eligible)
        if item is None and self.options.get("once") and self._n_open:
            if not self._pending and self._strata.peek() is None:
                self.stop_reason = "every item that can be scored was read once"
            return None
        return super()._next(eligible) if item is None else self._cell(item)

    def _first_unread(self, stratum: int, eligible: Eligible | None) -> int | None:
        waiting = self._waiting[stratum]
        while waiting and not self._is_unread(waiting[0][1]):
            heapq.heappop(waiting)
        if eligible is None:
            return waiting[0][1] if waiting else None
        return next(
            (item for _, item in sorted(waiting) if self._is_unread(item) and eligible(self._cell(item))),
            None,
        )

    def _is_unread(self, item: int) -> bool:
        return self._active[item] == 0 and self._open[item]

    def _asked(self, cell: Cell) -> None:
        super()._asked(cell)
        if self._active[cell.item] == 1:
            self._asked_of[self._stratum[cell.item]] += 1
            self._place_stratum(self._stratum[cell.item])

    def _failed(self, cell: Cell) -> None:
        super()._failed(cell)
        if self._active[cell.item] == 0:
            self._asked_of[self._stratum[cell.item]] -= 1
            self._waits_again(cell.item)

    def _learn(self, cell: Cell, value: float) -> None:
        super()._learn(cell, value)
        if self._n[cell.item] == 1:
            self._read_of[self._stratum[cell.item]] += 1
            self._place_stratum(self._stratum[cell.item])

    def _set_open(self, cell: Cell, is_open: bool) -> None:
        super()._set_open(cell, is_open)
        given_up = self._given_up[self._stratum[cell.item]]
        if is_open or self._n[cell.item]:
            given_up.discard(cell.item)
        else:
            given_up.add(cell.item)
        self._waits_again(cell.item)

    def _waits_again(self, item: int) -> None:
        if self._is_unread(item):
            entry = (self._rank_of[item], item)
            if entry not in self._waiting[self._stratum[item]][:1]:
                heapq.heappush(self._waiting[self._stratum[item]], entry)
        self._place_stratum(self._stratum[item])

    def _place_stratum(self, stratum: int) -> None:
        """Put the stratum where it belongs among those that have unread items."""
        if self._first_unread(stratum, None) is None:
            self._strata.remove(stratum)
        else:
            lost = max(0, len(self._given_up[stratum]) - self._read_of[stratum])
            due = (self._asked_of[stratum] + lost + self._start[stratum]) / self._size[stratum]
            self._strata.update(stratum, -due, 0)

    def _rank(self, item: int) -> float | None:
        return self._urgency(item)  # of further readings, no warm-up to wait for

    def _urgency(self, item: int) -> float:
        return -float(self.n_asked(item))
