"""ROBIN: repeats in proportion to known variances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.repeats._objective import Objective
from evalbudget.repeats._rounds import Note, Readings, Round, Wait
from evalbudget.repeats.samplers._base import RepeatSampler
from evalbudget.sampler import Allocation, SamplerOptions
from evalbudget.statistics._bounds import FloatArray


class Robin(RepeatSampler):
    r"""Known variances: one reading each, then :math:`\arg\max_i \sigma_i^2 / n_i`.

    Without ``variances`` the first ``pilot`` readings of each item estimate them, once and for all.

    Args:
        variances: :math:`\sigma_i^2`, shape (n_items,), finite and >= 0; None to take them from a pilot.
        pilot: readings of each item in the pilot, at least 2; ignored when variances are given.
        objective: ``worst-item`` as in the paper, or ``mse`` / ``mean`` with :math:`\sigma_i^2/(n_i(n_i+1))`.
        warmup: at least this many readings of each item.
        common: see RepeatSampler.

    Raises:
        InvalidInputError: variances of another shape, negative or not finite; a pilot below 2.

    References:
        arXiv 2602.15481 (ROBIN).
    """

    name = "robin"

    def __init__(
        self,
        design: Design,
        *,
        variances: Sequence[float] | None = None,
        pilot: int = 10,
        objective: str = Objective.WORST_ITEM,
        warmup: int = 1,
        **common: Unpack[SamplerOptions],
    ) -> None:
        self.objective = Objective.named(objective)
        known = None if variances is None else np.asarray(variances, dtype=float)
        if known is not None:
            if known.shape != (design.n_items,):
                raise InvalidInputError(
                    f"robin got variances of shape {known.shape} for {design.n_items} items; give one each"
                )
            if not (np.isfinite(known).all() and (known >= 0).all()):
                raise InvalidInputError(
                    "robin got a variance that is negative or not finite; leave them out to use a pilot"
                )
        elif pilot < 2:
            raise InvalidInputError(f"robin got pilot={pilot}; a variance needs at least 2 readings")
        super().__init__(
            design,
            warmup=max(warmup, 1 if known is not None else pilot),
            options={
                "variances": None if known is None else tuple(known.tolist()),
                "pilot": pilot,
                "objective": self.objective.value,
            },
            **common,
        )
        self.allocation = Allocation.FIXED if known is not None else Allocation.ADAPTIVE
        self._variances: FloatArray | None = known

    def plan(self, table: Readings, last: Note | None) -> Round | Wait:
        """As many readings as there are items, each of the item that is known least then."""
        if last is None:
            return self.warm_up()
        variances = self._variances
        if variances is None:
            if missing := table.out_of(0):
                return Wait(table.settled + missing)
            n, squares = table.moments(self.design.n_raters, last_phase=0)
            variances = squares / np.maximum(n - 1, 1)
        worst = self.objective is Objective.WORST_ITEM
        items = table.most_wanted(
            self.order, self.design.n_items, lambda item, n: variances[item] / (n if worst else n * (n + 1))
        )
        return Round(items, Note(last.phase + 1))
