"""Every cell that rounds asked for, and what came of it: what samplers plan from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalbudget.design import Cell
from evalbudget.statistics._bounds import BoolArray, FloatArray, IntArray

OPEN, TAKEN, CAME, CLOSED = range(4)
"""What may become of a cell: to be asked, under way, with a score, given up for good."""


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Cells in the order in which rounds asked for them.

    Attributes:
        model: of each cell, shape (k,).
        item: of each, same shape.
        epoch: of each, same shape.
        rater: of each, same shape.
        round: that asked for it, from 0, same shape.
        phase: of that round, same shape.
        state: ``OPEN``, ``TAKEN``, ``CAME`` or ``CLOSED``, same shape. An open one may have failed before.
        value: its score, same shape; nan if it has none.
        tries: how often it was handed out, same shape.
        lost: how many of these were lost, with whoever made the call, same shape: that is no failure.
        cost: of its tries that came back, with or without a score, in units of the budget, same shape.
        withdrawn: how often cells had been handed out in all when each model was withdrawn, shape
            (n_models,); -1 where it was not. What is open of one that was is not asked any more.
        given_up: what is not asked for now, since it fails, where rounds do not wait for all; as
            :meth:`~evalbudget.sampler.Sampler.closes_as` names it.
        n_rounds: how many rounds there were.
    """

    model: IntArray
    item: IntArray
    epoch: IntArray
    rater: IntArray
    round: IntArray
    phase: IntArray
    state: NDArray[np.int8]
    value: FloatArray
    tries: IntArray
    lost: IntArray
    cost: FloatArray
    withdrawn: IntArray
    given_up: frozenset[Cell]
    n_rounds: int

    @property
    def wanted(self) -> BoolArray:
        """Which cells have yet to come, or to come back, shape (k,)."""
        return np.asarray((self.state == TAKEN) | ((self.state == OPEN) & (self.withdrawn[self.model] < 0)))

    @property
    def asked(self) -> int:
        """How often cells were handed out in all."""
        return int(self.tries.sum())

    @property
    def failures(self) -> IntArray:
        """How many tries of each cell came back without a score, shape (k,)."""
        return np.asarray(self.tries - self.lost - ((self.state == TAKEN) | (self.state == CAME)))

    @property
    def returned(self) -> IntArray:
        """How many tries of each cell came back, with or without a score, or were lost, shape (k,)."""
        return np.asarray(self.tries - self.under_way)

    @property
    def under_way(self) -> BoolArray:
        """Which cells may still come back, shape (k,)."""
        return np.asarray(self.state == TAKEN)


class Planned(NamedTuple):
    """Cells to ask, in this order, and what the plan after them must know.

    Attributes:
        model: of each cell, shape (k,).
        item: of each, same shape.
        phase: of all of them, from 0.
        note: given to the next plan.
        propensity: with which each was drawn, same shape; None where they were not drawn so.
    """

    model: IntArray
    item: IntArray
    phase: int
    note: Any
    propensity: FloatArray | None = None


class Wait(NamedTuple):
    """Ask again once so many tries came back."""

    until: int


class Stop(NamedTuple):
    """Ask nothing more."""

    reason: str
