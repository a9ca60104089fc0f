"""Cells that somebody else chose, and the sampler plans once more: they are asked once."""

from __future__ import annotations

from collections import Counter

import numpy as np

from evalbudget.book._copy import Copy
from evalbudget.cells import Planned

Place = tuple[int, int, int]
"""Model, item and phase."""


class Adopted:
    """How many cells of each place are there before the sampler planned any of them."""

    def __init__(self) -> None:
        self._ahead: Counter[Place] = Counter()

    def add(self, copy: Copy, cells: list[int]) -> None:
        """These are there; the sampler planned none of them."""
        self._ahead.update(_place(copy, cell) for cell in cells)

    def without(self, planned: Planned) -> tuple[Planned, Adopted]:
        """What is left to ask of a round; and what is ahead of the next ones once this one has begun."""
        if not self._ahead:
            return planned, self
        left = Adopted()
        ahead = left._ahead = self._ahead.copy()
        kept = np.ones(planned.item.size, np.bool_)
        for number, (model, item) in enumerate(zip(planned.model, planned.item, strict=True)):
            place = int(model), int(item), planned.phase
            kept[number] = ahead[place] <= 0
            ahead[place] -= not kept[number]
        drawn = None if planned.propensity is None else planned.propensity[kept]
        asked = planned._replace(model=planned.model[kept], item=planned.item[kept], propensity=drawn)
        return asked, left

    def gives_way(self, copy: Copy, cell: int) -> bool:
        """Whether a cell that has no score is not asked again: the sampler plans another in its place."""
        place = _place(copy, cell)
        if self._ahead[place] <= 0:
            return False
        self._ahead[place] -= 1
        return True


def _place(copy: Copy, cell: int) -> Place:
    model, item, phase = (copy.of(name, cell) for name in ("model", "item", "phase"))
    return model, item, phase
