"""Samplers that repeat items in phases: the default, and the same with one model of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Unpack

import numpy as np

from evalbudget.cells import Cells
from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.repeats._objective import Objective
from evalbudget.repeats._rounds import Note, Readings, Round, Wait
from evalbudget.repeats.phases._counts import FIRST
from evalbudget.repeats.phases._plan import Phases
from evalbudget.repeats.phases._spread import Scores
from evalbudget.repeats.samplers._base import RepeatSampler
from evalbudget.sampler import Allocation, SamplerOptions
from evalbudget.statistics._bounds import FloatArray
from evalbudget.statistics._phase_means import MOST_PHASES


class PhasedSampler(RepeatSampler):
    """Repeats in the phases of :class:`~evalbudget.repeats.phases._plan.Phases`.

    Args:
        design: one model, any number of items; several raters only if they take turns.
        objective: ``worst-item``, ``mse`` or ``mean``; None: the benchmark mean on scores of two values, the
            worst item on others.
        weights: w_i of the benchmark mean, shape (n_items,); equal if None.
        budget: readings that will be bought in all, if known; phases end with it.
        warmup: readings of each item in the first phase, at least 2.
        common: see Sampler.

    Raises:
        UnknownNameError: no such objective.
        InvalidInputError: weights of another shape, negative or not finite.
    """

    allocation = Allocation.PHASED
    scores: ClassVar[Scores | None] = None

    def __init__(
        self,
        design: Design,
        *,
        objective: str | None = None,
        weights: Sequence[float] | None = None,
        budget: int | None = None,
        warmup: int = FIRST,
        **common: Unpack[SamplerOptions],
    ) -> None:
        self.objective = None if objective is None else Objective.named(objective)
        options = {
            "objective": None if self.objective is None else self.objective.value,
            "weights": None if weights is None else tuple(weights),
        }
        super().__init__(design, warmup=max(warmup, FIRST), options=options, **common)
        self._weights = _weights(self.name, weights, design.n_items)
        self._budget = budget
        self._money: float | None = None  # that will be spent in all

    def weigh_costs(self, budget: float | None = None) -> None:
        """Ask items whose readings are dear less, as far as the objective allows; see Sampler.

        Args:
            budget: what will be spent in all, if known; phases end with it.
        """
        super().weigh_costs(budget)
        self._money = budget

    @property
    def minimum_readings(self) -> int:
        """One of each item: with less than two of each, all are asked equally often."""
        return self.design.n_items

    def left(self, cells: Cells) -> int | None:
        """How many more readings are paid for, as far as costs so far tell."""
        in_all = self._budget
        if self._money is not None:
            paid, returned = float(cells.cost.sum()), int(cells.returned.sum())
            in_all = int(min(self._money * returned / paid, 1e15) + 1e-6) if paid > 0.0 else None
        return None if in_all is None else max(in_all - cells.asked, 0)

    def plan(self, table: Readings, last: Note | None) -> Round | Wait:
        """The next round of a phase; see :class:`~evalbudget.repeats.phases._plan.Phases`."""
        return Phases(
            self.design.n_items,
            self.seed,
            self._weights,
            self.warmup,
            self.objective,
            self.scores,
            self.design.n_raters,
            until_known=self._goal is not None,
        ).plan(table, last)


class Auto(PhasedSampler):
    """The default: the model of scores follows what is read.

    Scores of two values are taken for a beta-binomial, those on a scale of at most 32 levels by what one
    reading of an item says about another (``rating-kernel``), others by the items' variances
    (``eb-bernstein``); see :mod:`evalbudget.repeats.phases._spread`.
    """

    name = "auto"


class EBBernstein(PhasedSampler):
    """By the items' variances, shrunk towards the pool's, with a Bernstein term for what was not seen."""

    name = "eb-bernstein"
    scores = Scores.NUMBERS


class RatingKernel(PhasedSampler):
    """By what one reading of an item says about another, on a scale of few levels."""

    name = "rating-kernel"
    scores = Scores.LEVELS


def checked_phase(phase: object) -> int:
    """What the record of a run calls a phase.

    Raises:
        InvalidInputError: it is none.
    """
    if type(phase) is int and 0 <= phase < MOST_PHASES:
        return phase
    raise InvalidInputError(f"phase {phase!r:.30} is not a whole number from 0 to {MOST_PHASES - 1}")


def _weights(name: str, weights: Sequence[float] | None, n_items: int) -> FloatArray:
    if weights is None:
        return np.ones(n_items)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n_items,) or not np.isfinite(w).all() or (w < 0).any() or not (w > 0).any():
        raise InvalidInputError(
            f"{name} got weights of shape {w.shape} for {n_items} items; give one finite number >= 0 "
            "per item, not all zero"
        )
    return w
