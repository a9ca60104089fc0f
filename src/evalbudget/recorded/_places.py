"""Where the readings of a long table stand in an array."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalbudget.errors import InvalidInputError
from evalbudget.untrusted import MORE, largest

IntArray = NDArray[np.int64]
_SPARSE = 4
_DIGITS = 18  # of what fits 64 bits


@dataclass(frozen=True, eq=False)
class Places:
    """Place of every reading on the four axes of an array of scores.

    Attributes:
        names: of models, items and raters, in the order in which they appear.
        index: position of each reading on each axis, shape (n,) each.
        shape: of the array.
    """

    names: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    index: tuple[IntArray, IntArray, IntArray, IntArray]
    shape: tuple[int, int, int, int]

    @classmethod
    def of(
        cls,
        items: Sequence[str],
        *,
        models: Sequence[str] | None = None,
        raters: Sequence[str] | None = None,
        repeats: Sequence[object] | None = None,
        where: Callable[[int], str] = lambda row: f"reading {row}",
    ) -> Places:
        """Of the readings in a table, one entry each.

        Repeats of the same label stand at the same place: raters scored the same answer there.

        Args:
            items: of each reading.
            models: the same; None for a single one named ``model``.
            raters: the same; None for a single one named ``rater``.
            repeats: any label that tells a cell's readings apart; None numbers them.
            where: names a reading, for messages.

        Raises:
            InvalidInputError: a cell has the same repeat twice, or the array would fill the memory.
        """
        n = len(items)
        model, model_names = _codes(models, n, "model")
        item, item_names = _codes(items, n, "item")
        rater, rater_names = _codes(raters, n, "rater")
        answered = item + len(item_names) * model
        cell = rater + len(rater_names) * answered
        if repeats is None:
            repeat = counted(cell)
        else:
            label, labels = _labels(repeats)
            twice = _second(label + len(labels) * cell)
            if twice is not None:
                first, row = twice
                raise InvalidInputError(
                    f"{where(row)}: the same item, model, rater and repeat as {where(first)} "
                    f"({item_names[item[row]]!r}, {model_names[model[row]]!r}, {rater_names[rater[row]]!r}, "
                    f"{repeats[row]!r}); number repeats apart, or leave the column out"
                )
            repeat = _aligned(answered, label, len(labels))
        shape = (len(model_names), len(item_names), len(rater_names), int(repeat.max(initial=0)) + 1)
        if 8 * math.prod(shape) > largest():
            raise InvalidInputError(
                f"{n:,} readings of {shape[0]:,} models, {shape[1]:,} items and {shape[2]:,} raters, up to "
                f"{shape[3]:,} a cell, make a table of {8 * math.prod(shape) / 2**30:,.0f} GiB, nearly all "
                f"empty; check that the columns hold names, split the readings into several files, or {MORE}"
            )
        return cls((model_names, item_names, rater_names), (model, item, rater, repeat), shape)

    def array(self, column: ArrayLike, empty: float = math.nan) -> NDArray[Any]:
        """The column as an array of this shape.

        Args:
            column: an entry for each reading.
            empty: what stands where there is no reading; its type is that of the array.
        """
        array = np.full(self.shape, empty)
        array[self.index] = column
        return array


def _codes(names: Sequence[str] | None, n: int, default: str) -> tuple[IntArray, tuple[str, ...]]:
    if names is None:
        return np.zeros(n, dtype=np.int64), (default,)
    code: dict[str, int] = {}
    found = np.array([code.setdefault(str(name), len(code)) for name in names], dtype=np.int64)
    return found, tuple(code)


def _labels(repeats: Sequence[object]) -> tuple[IntArray, list[object]]:
    """Codes of the labels: in their order if they are numbers, else in that of appearance."""
    code: dict[object, int] = {}
    found = np.array([code.setdefault(label, len(code)) for label in repeats], dtype=np.int64)
    labels = list(code)
    return ranked(labels)[found], labels


def ranked(labels: Sequence[object]) -> IntArray:
    """Place of each label: in their order if all are whole numbers, else in that of appearance."""
    numbers = [_whole(label) for label in labels]
    rank: IntArray = np.arange(len(labels))
    if all(number is not None for number in numbers):
        order = np.argsort(np.array(numbers, dtype=np.int64), kind="stable")
        rank[order] = np.arange(len(order))
    return rank


def _whole(label: object) -> int | None:
    if isinstance(label, str) and len(label) <= _DIGITS and label.isascii() and label.isdecimal():
        return int(label)
    return label if isinstance(label, int) and abs(label) < 10**_DIGITS else None


def _second(keys: IntArray) -> tuple[int, int] | None:
    """The first row whose key stood in an earlier one, and that one."""
    kept, first, code = np.unique(keys, return_index=True, return_inverse=True)
    if kept.size == keys.size:
        return None
    again = int(np.flatnonzero(first[code] != np.arange(keys.size))[0])
    return int(first[code[again]]), again


def counted(groups: IntArray) -> IntArray:
    """How many rows of the same group stand before each."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.diff(ordered, prepend=-1))
    before = np.repeat(starts, np.diff(starts, append=ordered.size))
    count = np.empty_like(order)
    count[order] = np.arange(ordered.size) - before
    return count


def _aligned(answered: IntArray, label: IntArray, n_labels: int) -> IntArray:
    """The place of each label: one for all raters of an answer, and one in the whole table if that fits."""
    pairs, code = np.unique(label + n_labels * answered, return_inverse=True)
    place = counted(pairs // n_labels)
    if n_labels <= _SPARSE * (int(place.max(initial=0)) + 1):
        return label
    return place[code]
