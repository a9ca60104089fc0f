"""A third-party sampler, which asks the items whose scores range widest."""

from __future__ import annotations

import numpy as np

from evalbudget import Design
from evalbudget.repeats.samplers import Note, Readings, RepeatSampler, Round


class WidestRange(RepeatSampler):
    """Three readings each, then always the item with the largest (highest - lowest score) / readings."""

    name = "widest-range"

    def __init__(self, design: Design, *, warmup: int = 3, seed: int = 0) -> None:
        super().__init__(design, warmup=warmup, seed=seed)

    def plan(self, table: Readings, last: Note | None) -> Round:
        """A round has as many readings as there are items."""
        if last is None:
            return self.warm_up()
        highest, lowest = (np.full(self.design.n_items, end) for end in (-np.inf, np.inf))
        np.maximum.at(highest, table.item[table.is_read], table.value[table.is_read])
        np.minimum.at(lowest, table.item[table.is_read], table.value[table.is_read])
        width = np.maximum(highest / 2.0 - lowest / 2.0, 0.0)  # halves, so that it is finite
        items = table.most_wanted(self.order, self.design.n_items, lambda item, n: width[item] / n)
        return Round(items, Note(last.phase + 1))
