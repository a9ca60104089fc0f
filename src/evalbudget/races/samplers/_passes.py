"""In which order a round of a race is handed out, so that failures decide nothing by when they arrive."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evalbudget._failures import Failures
from evalbudget._passes import place_of
from evalbudget.design import Cell
from evalbudget.outage import DOWN_AFTER
from evalbudget.statistics._bounds import BoolArray, IntArray

_TRIES = 3  # of each of a model's last cells before it is taken to be down
_FIRST_PASS = 16  # cells of a model that has not answered anything yet


class Passes:
    """Passes over the cells of one round, each put together when every cell of the last one has come back.

    What failed comes first, again and again, so that a budget that ends within the round leaves no gaps; then
    cells not asked yet, per model at most as many as every model of the round has answered (16 at the start:
    a model that is down shall not be paid for a long round). A model whose last 8 cells of the round failed
    is a suspect, and gets only these again until one is answered or it is given up.

    Args:
        model: of each cell of the round, shape (k,).
        item: of each cell of the round, shape (k,).
        settled: which of them were known before, shape (k,).

    Attributes:
        cells: those that may be handed out now, by their place in the round, in this order.
        begun: whether fresh cells were handed out.
    """

    def __init__(self, model: IntArray, item: IntArray, settled: BoolArray) -> None:
        self._model, self._item = model, item
        self._place = place_of(model)  # among the cells of its model
        self._tried = settled.copy()
        self._reach = 0  # cells of a model, from the first of the round, that passes have come to
        self._suspects: list[int] = []
        self._last_tried = np.zeros(model.size, dtype=bool)
        self.cells: dict[int, None] = {}

    @property
    def begun(self) -> bool:
        return self._reach > 0

    def models_down(
        self, waiting: BoolArray, read: BoolArray, failures_of: Callable[[int], Failures]
    ) -> dict[int, list[Cell]]:
        """Find the suspects, when nothing of the round is in flight.

        Args:
            waiting: which cells are still wanted, shape (k,).
            read: which cells have a score, shape (k,).
            failures_of: what failed of a model so far.

        Returns:
            Models that seem to be down, with the cells that say so: the last 8 of the round, each of which
            failed three times or more; or all of a round that has fewer, once they failed as often
            altogether, or the model has never answered at all. The caller gives these cells up, and the model
            if they are enough to tell by.
        """
        self._suspects = []
        down: dict[int, list[Cell]] = {}
        self._last_tried[:] = False
        if not self._tried.any():
            return down
        for model in np.unique(self._model[waiting]).tolist():
            own = self._model == model
            last = np.flatnonzero(own & self._tried)[-DOWN_AFTER:]
            short = last.size < DOWN_AFTER
            if not last.size or read[last].any() or (short and not self._tried[own].all()):
                continue
            self._suspects.append(model)
            self._last_tried[last] = True
            cells = [Cell(model, item) for item in self._item[last].tolist()]
            failures = failures_of(model)
            times = [failures.fails.get(cell, 0) for cell in cells]
            often = min(times) >= _TRIES and sum(times) >= _TRIES * DOWN_AFTER
            if often or (short and failures.answers_nothing):
                down[model] = cells
        return down

    def next(self, waiting: BoolArray, answered: IntArray, in_flight: BoolArray) -> bool:
        """Put the next pass together.

        Args:
            waiting: which cells are still wanted, shape (k,).
            answered: scores of every model so far, this round's included.
            in_flight: which cells were asked by somebody else and count as handed out, shape (k,).

        Returns:
            Whether there is one.
        """
        failed, fresh = waiting & self._tried, waiting & ~self._tried
        if self._suspects:
            trusted = ~np.isin(self._model, self._suspects)
            failed, fresh = failed & (trusted | self._last_tried), fresh & trusted
        if failed.any() or not fresh.any():
            index = np.flatnonzero(failed)
        else:
            least = int(answered[self._model[fresh]].min())
            self._reach = max(self._reach + max(_FIRST_PASS, least), int(self._place[fresh].min()) + 1)
            index = np.flatnonzero(fresh & (self._place < self._reach))
        if not index.size:
            return False
        self._tried[index] = True
        self.cells = dict.fromkeys(index[~in_flight[index]].tolist())
        return True
