"""Which items belong together, and how many of each kind a benchmark has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import FloatArray, IntArray

_FEWEST = 2
"""Items of a stratum that show how its items differ."""


@dataclass(frozen=True, eq=False)
class Strata:
    """A benchmark of which a sample of items is read.

    Attributes:
        of_item: number of the stratum of each item of the readings, shape (n_items,).
        sizes: N_h, items of the whole benchmark in each stratum, shape (n_strata,).

    Raises:
        InvalidInputError: an item is of no stratum, or of one that is smaller than its items here.
    """

    of_item: IntArray
    sizes: IntArray

    def __post_init__(self) -> None:
        of_item = np.asarray(self.of_item, dtype=np.int64)
        sizes = np.asarray(self.sizes, dtype=np.int64)
        object.__setattr__(self, "of_item", of_item)
        object.__setattr__(self, "sizes", sizes)
        if of_item.size and not 0 <= of_item.min() <= of_item.max() < sizes.size:
            raise InvalidInputError(
                f"items are of strata {of_item.min()} to {of_item.max()}, and there are {sizes.size}; number "
                "them from 0"
            )
        if (np.bincount(of_item, minlength=sizes.size) > sizes).any():
            raise InvalidInputError("a stratum has more items than its size; give the sizes of all items")

    @classmethod
    def of(cls, labels: Sequence[str] | None, n_items: int) -> Self:
        """Of all items of a benchmark.

        Args:
            labels: one for each item, as ``Design.categories``; None where all are of one stratum.
            n_items: of the benchmark.
        """
        if labels is None:
            return cls(np.zeros(n_items, dtype=np.int64), np.array([n_items]))
        codes = np.unique(np.asarray(labels, dtype=object).astype(str), return_inverse=True)[1]
        return cls(codes, np.bincount(codes))

    @classmethod
    def of_read(cls, strata: Sequence[int | None], sizes: Mapping[int, int], n_items: int) -> Self:
        """Of the items that were read; those of strata without any are a stratum of their own.

        Args:
            strata: of each item of the readings, by any numbers; None for one of the others.
            sizes: of these strata, in the whole benchmark.
            n_items: of the benchmark.
        """
        number: dict[int | None, int] = {stratum: place for place, stratum in enumerate(sorted(sizes))}
        known = [sizes[stratum] for stratum in sorted(sizes)]
        unread = [n_items - sum(known)] if n_items > sum(known) else []
        number[None] = len(known)
        return cls(np.array([number[each] for each in strata], dtype=np.int64), np.array(known + unread))

    @property
    def n_items(self) -> int:
        """N, of the whole benchmark."""
        return int(self.sizes.sum())

    def weights(self, read: ArrayLike) -> FloatArray:
        """Of each item in the mean over those that were read; only their ratios matter.

        Args:
            read: whether each item was, shape (n_items,).
        """
        counts = np.bincount(self.of_item[np.asarray(read, dtype=bool)], minlength=self.sizes.size)
        return np.asarray((self.sizes / np.maximum(counts, 1))[self.of_item])

    def divide(self, clusters: IntArray) -> bool:
        """Whether some cluster lies across strata.

        Args:
            clusters: number of each item's, shape (n_items,).
        """
        parts = np.unique(np.stack([clusters, self.of_item]), axis=1).shape[1]
        return bool(parts > np.unique(clusters).size)

    def collapsed(self, read: ArrayLike) -> Strata:
        """The same benchmark with small strata taken together, so that every stratum shows its spread.

        Together go those in which fewer than two items were to be expected, by their sizes and how many were
        read in all: the sizes decide, and not the luck of the draw, so that within what is taken together
        every item was as likely to be read. Strata that for another reason (failures) have fewer than two go
        with them, and if all of these together have fewer than two, the smallest of the others.

        Args:
            read: whether each item was, shape (n_items,).
        """
        counts = np.bincount(self.of_item[np.asarray(read, dtype=bool)], minlength=self.sizes.size)
        if self.sizes.size < 2 or not counts.sum():
            return self
        expected = self.sizes * (counts.sum() / self.n_items)
        small = (expected < _FEWEST) | (counts < _FEWEST)
        if not small.any():
            return self
        for stratum in np.argsort(self.sizes, kind="stable"):
            if counts[small].sum() >= _FEWEST:
                break
            small[stratum] = True
        number = np.where(small, 0, np.cumsum(~small))
        return Strata(number[self.of_item], np.bincount(number, weights=self.sizes).astype(np.int64))


def strata_labels(values: Sequence[object | None], field: str, known: Iterable[str]) -> tuple[str, ...]:
    """What a field says of every item, as labels of strata; items without it are one stratum.

    Args:
        values: of the field, None where an item has none; one per item.
        field: its name, as the user wrote it.
        known: fields that items have, for the message.

    Raises:
        InvalidInputError: no item has the field, or no two items share a value of it.
    """
    if all(value is None for value in values):
        fields = ", ".join(sorted(set(known))[:8])
        there = f"they have {fields}; name one of these" if fields else "they have none at all"
        raise InvalidInputError(f"--strata {field}: no item has a field {field!r}: {there}, or drop --strata")
    labels = tuple("" if value is None else str(value) for value in values)
    if len(labels) > 1 and len(set(labels)) == len(labels):
        raise InvalidInputError(
            f"--strata {field}: each of the {len(labels):,} items has a value of its own, so that no two are "
            "alike. Name a field that items share, such as a category, or drop --strata"
        )
    return labels
