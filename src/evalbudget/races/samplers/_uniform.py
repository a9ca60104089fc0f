"""The same items for every model: what an evaluation without evalbudget does, cut off at the budget."""

from __future__ import annotations

from evalbudget.design import Design
from evalbudget.races.samplers._base import RacingSampler, Step
from evalbudget.sampler import Allocation

_CELLS_AT_ONCE = 4096


class UniformRacing(RacingSampler):
    """Item after item, in random order, each asked of every model.

    Nothing is decided on the way, so that steps are long: as many items as make about 4096 cells.

    Args:
        design: the models and items.
        batch: items per model in a step at least.
        score_range: smallest and largest possible score.
        seed: of the order of items, and of ties.
        max_failures: see Sampler.

    Raises:
        InvalidInputError: see RacingSampler.
    """

    name = "uniform"
    allocation = Allocation.FIXED

    def __init__(
        self,
        design: Design,
        *,
        batch: int = 1,
        score_range: tuple[float, float] = (0.0, 1.0),
        seed: int = 0,
        max_failures: int = 3,
    ) -> None:
        super().__init__(design, batch=batch, score_range=score_range, seed=seed, max_failures=max_failures)

    def _plan(self) -> Step | None:
        if self._stop_if_over():
            return None
        return self._draw(self._drawable(), max(self.batch, _CELLS_AT_ONCE // self._n_models))
