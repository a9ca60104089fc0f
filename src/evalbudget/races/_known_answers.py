"""What earlier attempts at a race answered: a race asks it anew, and it is there."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from evalbudget import Cell
from evalbudget.races._lanes import Key, KnownCell


class KnownAnswers:
    """Answers of each model to each item, in the order in which they were asked for.

    Args:
        place: of each document among the documents, by its id.
        repeats: answers to each document, each an item of the design.
    """

    def __init__(self, place: Mapping[str, int], repeats: int) -> None:
        self._place, self._repeats = place, repeats
        self._cells: dict[tuple[int, int], deque[KnownCell]] = {}
        self._n = 0

    def __bool__(self) -> bool:
        """Whether any is left."""
        return self._n > 0

    def __contains__(self, cell: Cell) -> bool:
        """Whether there is one for the next call of a cell."""
        return bool(self._cells.get((cell.model, cell.item)))

    def add(self, model: int, cell: KnownCell) -> int | None:
        """Keep one; which item of the design it is of, None if that has its score already."""
        item = self._item_of(model, cell.key)
        if item is not None:
            self._cells.setdefault((model, item), deque()).append(cell)
            self._n += 1
        return item

    def take(self, cell: Cell) -> KnownCell:
        """That of the next call of a cell, which has it now."""
        self._n -= 1
        return self._cells[cell.model, cell.item].popleft()

    def replace(self, model: int, item: int, key: Key, cell: KnownCell | None) -> None:
        """What became of one that was under way; None if nothing will."""
        known = self._cells[model, item]
        at = [each.key for each in known].index(key)
        if cell is None:
            del known[at]
            self._n -= 1
        else:
            known[at] = cell

    def _item_of(self, model: int, key: Key) -> int | None:
        item = self._place[key[0]] * self._repeats + (key[1] - 1) % self._repeats
        known = self._cells.get((model, item))
        is_open = not known or (known[-1].value is None and not known[-1].again)
        return item if is_open else None
