"""Which items are given up, by what failed of each model so far."""

from __future__ import annotations

from collections.abc import Callable

from evalbudget._failures import Failures
from evalbudget.design import Cell, Design


class GivenUp:
    """Counts what comes back; :meth:`now` is a function of the counts and of nothing else.

    Args:
        design: of what is asked.
        closes_as: the cell, at epoch 0, by which what closes together is named.
    """

    def __init__(self, design: Design, closes_as: Callable[[Cell], Cell]) -> None:
        self._design = design
        self._closes_as = closes_as
        self._reads: dict[Cell, int] = {}
        self._failures: dict[int, Failures] = {}
        self._found: dict[int, frozenset[Cell]] = {}
        self._changed: set[int] = set()

    def read(self, cell: Cell) -> None:
        """A cell has a score."""
        key = self._closes_as(cell)
        self._reads[key] = self._reads.get(key, 0) + 1
        self._of(cell.model).read(key)

    def failed(self, cell: Cell) -> None:
        """A try of a cell brought none."""
        self._of(cell.model).failed(self._closes_as(cell), lambda key: self._reads.get(key, 0))

    def now(self) -> frozenset[Cell]:
        """What is given up."""
        for model in self._changed:
            failures = self._failures[model]
            found = self._everything(model) if failures.answers_nothing else failures.given_up()
            self._found[model] = frozenset(found)
        self._changed.clear()
        return frozenset().union(*self._found.values())

    def _of(self, model: int) -> Failures:
        self._changed.add(model)
        if model not in self._failures:
            d = self._design
            keys = {self._closes_as(Cell(rater=rater)) for rater in range(d.n_raters)}
            self._failures[model] = Failures(d.n_items * len(keys))
        return self._failures[model]

    def _everything(self, model: int) -> set[Cell]:
        d = self._design
        cells = (Cell(model, item, 0, rater) for item in range(d.n_items) for rater in range(d.n_raters))
        return {self._closes_as(cell) for cell in cells}
