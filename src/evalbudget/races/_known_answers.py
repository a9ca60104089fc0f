"""What earlier attempts at a race answered: a race asks it anew, and it is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalbudget import Cell
from evalbudget.races._lanes import Key, KnownCell


class KnownAnswers:
    """Answers of each model to each item, in the order in which they were asked for.

    Args:
        documents: their ids.
        repeats: answers to each document, each an item of the design.
    """

    def __init__(self, documents: Sequence[str], repeats: int) -> None:
        self._documents, self._repeats = documents, repeats
        self._place = {document: place for place, document in enumerate(documents)}
        self._cells: dict[tuple[int, int], list[KnownCell]] = {}
        self._keys: set[tuple[int, Key]] = set()  # of cells that hosts ran, or were given

    def has(self, key: Key) -> bool:
        """Whether it is of one of the documents."""
        return key[0] in self._place

    def of(self, cell: Cell) -> KnownCell | None:
        """That of a call, whose cell's ``epoch`` counts the calls of its model and item; None without one."""
        known = self._cells.get((cell.model, cell.item), ())
        return known[cell.epoch] if cell.epoch < len(known) else None

    def add(self, model: int, cell: KnownCell) -> int | None:
        """Keep one; which item of the design it is of, None if that has its score already."""
        self._keys.add((model, cell.key))
        item = self._item_of(model, cell.key)
        if item is not None:
            self._cells.setdefault((model, item), []).append(cell)
        return item

    def replace(self, model: int, item: int, cell: KnownCell) -> None:
        """What became of one that was under way."""
        known = self._cells[model, item]
        known[[each.key for each in known].index(cell.key)] = cell

    def take_keys(self, model: int, cells: Iterable[KnownCell]) -> None:
        """No other cells are to have their keys."""
        self._keys |= {(model, cell.key) for cell in cells}

    def key_of(self, cell: Cell) -> Key:
        """That of a call, whose cell's ``epoch`` counts as above."""
        known = self.of(cell)
        if known is not None:
            return known.key
        document, answer = divmod(cell.item, self._repeats)
        return self._documents[document], answer + 1 + self._repeats * cell.epoch

    def new_key(self, cell: Cell) -> Key:
        """The same, or a later one, if a host had that before."""
        document, number = self.key_of(cell)
        while (cell.model, (document, number)) in self._keys:
            number += self._repeats
        self._keys.add((cell.model, (document, number)))
        return document, number

    def _item_of(self, model: int, key: Key) -> int | None:
        item = self._place[key[0]] * self._repeats + (key[1] - 1) % self._repeats
        known = self._cells.get((model, item))
        is_open = not known or (known[-1].value is None and not known[-1].again)
        return item if is_open else None
