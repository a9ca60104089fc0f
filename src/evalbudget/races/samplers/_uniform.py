"""The same items for every model: what an evaluation without evalbudget does, cut off at the budget."""

from __future__ import annotations

from typing import Any, Unpack

from evalbudget.design import Design
from evalbudget.races.samplers._base import RacingOptions, RacingSampler
from evalbudget.races.samplers._rounds import Round, Stop, Table
from evalbudget.sampler import Allocation

_CELLS_AT_ONCE = 4096


class UniformRacing(RacingSampler):
    """Item after item, in random order, each asked of every model.

    Nothing is decided on the way, so that rounds are long: as many items as make about 4096 cells.

    Args:
        batch: items per model in a round at least.
        common: see RacingSampler.

    Raises:
        InvalidInputError: see RacingSampler.
    """

    name = "uniform"
    allocation = Allocation.FIXED

    def __init__(self, design: Design, *, batch: int = 1, **common: Unpack[RacingOptions]) -> None:
        super().__init__(design, batch=batch, **common)

    def plan(self, table: Table, last: Any) -> Round | Stop:
        """The next items of every model in the race."""
        note = self.resumed(table, last)
        if reason := self.why_over(table, note):
            return Stop(reason, note)
        count = max(self.batch, _CELLS_AT_ONCE // self._n_models)
        return self.next_items(table, note, self.drawable(table, note), count)
