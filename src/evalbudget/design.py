"""What can be asked (Design, Cell), what was asked (Request) and what came back (Reading)."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from evalbudget.errors import InvalidInputError

LARGEST = 1e30
"""Of a score: powers of larger ones are no numbers any more."""


class Cell(NamedTuple):
    """Indices into a Design; asking a cell's model, item and rater again at a later epoch is a repeat.

    Attributes:
        model: index into ``Design.models``.
        item: index into ``Design.items``.
        epoch: ordinal of the repeat, from 0.
        rater: index into ``Design.raters``.
    """

    model: int = 0
    item: int = 0
    epoch: int = 0
    rater: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    """One score to buy.

    Attributes:
        id: position in the order of asking, from 0.
        cell: what to score.
        propensity: P(asked | history); None when the choice was deterministic.
        phase: in which it is asked, from 0, under ``Allocation.PHASED``; None elsewhere.
    """

    id: int
    cell: Cell
    propensity: float | None = None
    phase: int | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What came back for one request.

    Attributes:
        request: the request answered.
        value: the score; None when it failed: it cost, it taught nothing.
        cost: in units of the budget.
        error: why it failed, for the report.

    Values that are not finite are failures: ``Reading(r, nan).value`` is None.

    Raises:
        InvalidInputError: the cost is negative or not finite.
    """

    request: Request
    value: float | None
    cost: float = 1.0
    error: str | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.cost) and self.cost >= 0):
            raise InvalidInputError(
                f"the reading of request {self.request.id} costs {self.cost}; give a finite cost of 0 or more"
            )
        object.__setattr__(self, "cost", float(self.cost))
        if self.value is None:
            return
        if not abs(self.value) <= LARGEST:
            object.__setattr__(self, "error", self.error or f"score is {self.value}")
            object.__setattr__(self, "value", None)
            return
        object.__setattr__(self, "value", float(self.value))  # NumPy scalars and bools come in too


@dataclass(frozen=True)
class Design:
    """The names behind the indices of a Cell.

    Attributes:
        items: one name per item, unique.
        models: one name per model, unique.
        raters: one name per judge or human, unique.
        categories: optional, one label per item.

    Raises:
        InvalidInputError: an axis is empty, a name is missing or stands twice.
    """

    items: tuple[str, ...]
    models: tuple[str, ...] = ("model",)
    raters: tuple[str, ...] = ("rater",)
    categories: tuple[str, ...] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for axis in ("items", "models", "raters"):
            object.__setattr__(self, axis, _names(axis, getattr(self, axis)))
        if self.categories is not None and len(self.categories) != len(self.items):
            raise InvalidInputError(
                f"design has {len(self.categories)} categories for {len(self.items)} items; give one per item"
            )

    @classmethod
    def of_items(cls, n_items: int) -> Design:
        """A design of ``n_items`` anonymous items, one model, one rater."""
        return cls(items=tuple(str(i) for i in range(n_items)))

    @property
    def n_items(self) -> int:
        """Number of items."""
        return len(self.items)

    @property
    def n_models(self) -> int:
        """Number of models."""
        return len(self.models)

    @property
    def n_raters(self) -> int:
        """Number of raters."""
        return len(self.raters)

    @cached_property
    def fingerprint(self) -> str:
        """Short hash of every name, to tell whether a book belongs to this design."""
        digest = hashlib.sha256()
        for axis in (self.models, self.items, self.raters):
            for name in axis:
                digest.update(name.encode())
                digest.update(b"\0")
            digest.update(b"\1")
        return digest.hexdigest()[:16]

    def __contains__(self, cell: object) -> bool:
        if not isinstance(cell, Cell):
            return False
        return (
            0 <= cell.model < len(self.models)
            and 0 <= cell.item < len(self.items)
            and 0 <= cell.rater < len(self.raters)
            and cell.epoch >= 0
        )


def _names(axis: str, names: Sequence[str]) -> tuple[str, ...]:
    result = tuple(names)
    if not result:
        raise InvalidInputError(f"design has no {axis}; give at least one")
    if len(set(result)) != len(result):
        seen: set[str] = set()
        twice = sorted({n for n in result if n in seen or seen.add(n)})  # type: ignore[func-returns-value]
        shown = ", ".join(repr(n) for n in twice[:5])
        raise InvalidInputError(f"design lists {axis} twice: {shown}; every name must be unique")
    if any(n == "" for n in result):
        raise InvalidInputError(
            f"design has {axis[:-1]} number {result.index('')} without a name; give every one an id"
        )
    return result
