"""A random sample of the items, each read once: for a budget below a reading of every item."""

from __future__ import annotations

from hashlib import sha256
from typing import Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.repeats._rounds import Note, Readings, Round, Stop, Wait
from evalbudget.repeats.samplers._base import RepeatSampler
from evalbudget.sampler import Allocation, SamplerOptions
from evalbudget.statistics._bounds import BoolArray, IntArray

_PART = 16
"""A round is this part of what was asked, so that an item that is given up is soon replaced."""


class Sample(RepeatSampler):
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
        common: see RepeatSampler; the seed is of the order.

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
        names = sorted(set(labels))
        self._stratum: IntArray = np.searchsorted(names, labels)
        self._size: IntArray = np.bincount(self._stratum)
        self._start = np.random.default_rng([self.seed, 1]).random(len(names))

    @property
    def minimum_readings(self) -> int:
        """One: a sample may be as small as it likes."""
        return 1

    def plan(self, table: Readings, last: Note | None) -> Round | Wait | Stop:
        """The next items that were never asked; after the last of them those with the fewest readings."""
        note = Note(0 if last is None else last.phase + 1)
        unread = table.is_open & (table.n_asked == 0)
        if unread.any():
            due = self._in_order(table, unread)
            return Round(due[: max(1, int((table.n_asked > 0).sum()) // _PART)], note)
        if not self.options.get("once"):
            return Round(table.least_read(self._in_order(None, np.ones(unread.size, np.bool_))), note)
        if table.under_way.any():
            return Wait(table.settled + 1)
        return Stop("every item that can be scored was read once")

    def _in_order(self, table: Readings | None, wanted: BoolArray) -> IntArray:
        """These items in the order in which they are due, after what is in the table."""
        taken = np.zeros(self._size.size, dtype=np.int64)
        if table is not None:
            read = np.bincount(table.item[table.is_read], minlength=wanted.size) > 0
            n_read, n_asked, given_up = (
                np.bincount(self._stratum[these], minlength=taken.size)
                for these in (read, table.n_asked > 0, ~table.is_open & ~read)
            )
            taken = n_asked + np.maximum(given_up - n_read, 0)
        items = self.order[wanted[self.order]]
        items = items[np.argsort(self._stratum[items], kind="stable")]
        stratum = self._stratum[items]
        number = np.arange(items.size) - np.searchsorted(stratum, stratum)
        at = (taken[stratum] + number + self._start[stratum]) / self._size[stratum]
        return items[np.argsort(at, kind="stable")]
