"""Preferences between answers of two models: what was shown first, who judged, and which was better."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evalbudget.errors import InvalidInputError
from evalbudget.shown import shown
from evalbudget.statistics import FloatArray, IntArray

JUDGE = "judge"
"""The judge of preferences that name none."""


class Preference(NamedTuple):
    """One judgement.

    Attributes:
        item: whose answers were compared.
        first: model whose answer was shown first.
        second: the other one.
        value: 1 if the first was better, 0 if the second, 0.5 for a tie, or between; None: no verdict.
        judge: who said so.
    """

    item: str
    first: str
    second: str
    value: float | None
    judge: str = JUDGE


@dataclass(frozen=True, eq=False)
class Preferences:
    """Many judgements, in the order in which they were asked.

    Attributes:
        items: names.
        models: names, at least two.
        judges: names.
        item: index of each judgement's item, shape (n,).
        first: of the model shown first, shape (n,).
        second: of the other one, shape (n,).
        judge: shape (n,).
        value: for the first, in [0, 1], shape (n,); nan where the verdict is missing.
        ordered: whether it is known which answer was shown first; if not, ``first`` is any of the two.
        not_read: columns of the table that were not used.
    """

    items: tuple[str, ...]
    models: tuple[str, ...]
    judges: tuple[str, ...]
    item: IntArray
    first: IntArray
    second: IntArray
    judge: IntArray
    value: FloatArray
    ordered: bool = True
    not_read: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        rows: Iterable[Preference],
        *,
        models: Iterable[str] = (),
        ordered: bool = True,
        not_read: Iterable[str] = (),
    ) -> Preferences:
        """From single judgements.

        Args:
            rows: in the order in which they were asked.
            models: all there are, in the order to show them; those of the rows come after.
            ordered: whether ``first`` says which answer was shown first.
            not_read: columns of the table that were not used.

        Raises:
            InvalidInputError: a model against itself, a value outside of 0 to 1, no verdict at all, or models
                that no chain of comparisons connects.
        """
        rows = list(rows)
        for number, row in enumerate(rows, start=1):
            check_preference(row, f"preference {number}")
        value = np.array([math.nan if row.value is None else float(row.value) for row in rows])
        if np.isnan(value).all():
            raise InvalidInputError(
                f"there is no preference with a verdict ({value.size} without); give at least one"
            )
        named = [*models, *(name for row in rows for name in (row.first, row.second))]
        of_models = {name: at for at, name in enumerate(dict.fromkeys(named))}
        items, item = _numbered([row.item for row in rows])
        judges, judge = _numbered([row.judge for row in rows])
        found = cls(
            items=items,
            models=tuple(of_models),
            judges=judges,
            item=item,
            first=np.array([of_models[row.first] for row in rows]),
            second=np.array([of_models[row.second] for row in rows]),
            judge=judge,
            value=value,
            ordered=ordered,
            not_read=tuple(not_read),
        )
        found.voted.check_connected()
        return found

    @cached_property
    def missing(self) -> int:
        """Judgements without a verdict."""
        return int(np.isnan(self.value).sum())

    @cached_property
    def voted(self) -> Preferences:
        """Those with a verdict."""
        return self.where(~np.isnan(self.value)) if self.missing else self

    @property
    def repeated(self) -> int:
        """Judgements of an item, order and judge that there were before."""
        keys = np.stack([self.item, self.first, self.second, self.judge])
        return int(self.item.size - np.unique(keys, axis=1).shape[1])

    def where(self, kept: NDArray[np.bool_]) -> Preferences:
        """Some of the judgements; items, models and judges keep their numbers.

        Args:
            kept: which ones, shape (n,).
        """
        return replace(
            self,
            item=self.item[kept],
            first=self.first[kept],
            second=self.second[kept],
            judge=self.judge[kept],
            value=self.value[kept],
        )

    def filled(self, model: FloatArray) -> Preferences:
        """With the missing verdicts taken to favour one of the two.

        Args:
            model: above 0 where the first is favoured, below 0 where the second is, shape (n,).
        """
        guess = np.where(model > 0.0, 1.0, np.where(model < 0.0, 0.0, 0.5))
        return replace(self, value=np.where(np.isnan(self.value), guess, self.value))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of models that met, the first-named first."""
        met = zip(self.first.tolist(), self.second.tolist(), strict=True)
        return sorted({(min(both), max(both)) for both in met})

    def of_pair(self, a: int, b: int) -> IntArray:
        """Rows in which two models met."""
        met = (self.first == a) & (self.second == b) | (self.first == b) & (self.second == a)
        return np.flatnonzero(met)

    def value_for(self, model: int, rows: IntArray) -> FloatArray:
        """Value for one of the two."""
        return np.where(self.first[rows] == model, self.value[rows], 1.0 - self.value[rows])

    def sign_for(self, model: int, rows: IntArray) -> FloatArray:
        """1 where it was shown first, -1 where it was shown second."""
        return np.where(self.first[rows] == model, 1.0, -1.0)

    def check_connected(self) -> None:
        """Refuse models that no chain of comparisons connects: nothing says who of them is better.

        Raises:
            InvalidInputError: there are such groups; names them.
        """
        groups = self._groups()
        if len(groups) > 1:
            named = "; ".join(", ".join(map(shown, names)) for names in groups)
            raise InvalidInputError(
                f"the models fall into {len(groups)} groups that were never compared with one another "
                f"({named}), so they cannot be ranked together; compare one model of each group with one of "
                "another, or read each group by itself"
            )

    @property
    def is_connected(self) -> bool:
        """Whether a chain of comparisons connects all models."""
        return len(self._groups()) == 1

    def _groups(self) -> list[list[str]]:
        """Names of models that a chain of comparisons connects."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        k = len(self.models)
        met = coo_array((np.ones(self.first.size), (self.first, self.second)), shape=(k, k))
        count, group = connected_components(met, directed=False)
        return [[self.models[m] for m in np.flatnonzero(group == each)] for each in range(count)]


def _numbered(names: Sequence[str]) -> tuple[tuple[str, ...], IntArray]:
    """The different ones, in their order, and the number of each."""
    at = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return tuple(at), np.array([at[name] for name in names])


def check_preference(row: Preference, place: str) -> None:
    """Refuse what is no preference.

    Args:
        row: to look at.
        place: where it stands, which begins the message.

    Raises:
        InvalidInputError: a name is empty, a model is against itself, or the value is outside of 0 to 1.
    """
    for kind in ("item", "first", "second", "judge"):
        if not getattr(row, kind):
            raise InvalidInputError(f"{place}: the {kind} is empty; give every preference one")
    if row.first == row.second:
        raise InvalidInputError(
            f"{place}: {row.first!r} stands against itself; name two models, or leave it out"
        )
    if row.value is not None and not (math.isfinite(row.value) and 0.0 <= row.value <= 1.0):
        raise InvalidInputError(
            f"{place}: value {row.value:g} is not between 0 and 1; write 1 where the first was better, 0 "
            "where the second was, 0.5 for a tie"
        )
