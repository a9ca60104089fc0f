"""The same items for every model: what an evaluation without evalbudget does, cut off at the budget."""

from __future__ import annotations

from typing import Unpack

from evalbudget.design import Design
from evalbudget.races.samplers._base import RacingOptions, RacingSampler, Step
from evalbudget.sampler import Allocation

_CELLS_AT_ONCE = 4096


class UniformRacing(RacingSampler):
    """Item after item, in random order, each asked of every model.

    Nothing is decided on the way, so that steps are long: as many items as make about 4096 cells.

    Args:
        batch: items per model in a step at least.
        common: see RacingSampler.

    Raises:
        InvalidInputError: see RacingSampler.
    """

    name = "uniform"
    allocation = Allocation.FIXED

    def __init__(self, design: Design, *, batch: int = 1, **common: Unpack[RacingOptions]) -> None:
        super().__init__(design, batch=batch, **common)

    def _plan(self) -> Step | None:
        if self._stop_if_over():
            return None
        return self._draw(self._drawable(), max(self.batch, _CELLS_AT_ONCE // self._n_models))
