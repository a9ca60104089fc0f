"""Preferences between answers of two models: what was shown first, who judged, and which was better."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import FloatArray, IntArray

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
        value: for the first, in [0, 1], shape (n,).
        failed: judgements without a verdict, which are in none of the arrays.
    """

    items: tuple[str, ...]
    models: tuple[str, ...]
    judges: tuple[str, ...]
    item: IntArray
    first: IntArray
    second: IntArray
    judge: IntArray
    value: FloatArray
    failed: int = 0

    @classmethod
    def of(cls, rows: Iterable[Preference], *, models: Iterable[str] = ()) -> Preferences:
        """From single judgements.

        Args:
            rows: in the order in which they were asked.
            models: all there are, in the order to show them; those of the rows come after.

        Raises:
            InvalidInputError: a model against itself, a value outside of 0 to 1, no verdict at all, or models
                that no chain of comparisons connects.
        """
        of_items: dict[str, int] = {}
        of_models = {name: at for at, name in enumerate(dict.fromkeys(models))}
        of_judges: dict[str, int] = {}
        columns: list[tuple[int, int, int, int]] = []
        values: list[float] = []
        failed = 0
        for number, row in enumerate(rows, start=1):
            check_preference(row, f"preference {number}")
            places = (
                of_items.setdefault(row.item, len(of_items)),
                of_models.setdefault(row.first, len(of_models)),
                of_models.setdefault(row.second, len(of_models)),
                of_judges.setdefault(row.judge, len(of_judges)),
            )
            if row.value is None:
                failed += 1
                continue
            columns.append(places)
            values.append(float(row.value))
        if not values:
            raise InvalidInputError(
                f"there is no preference with a verdict ({failed} without); give at least one"
            )
        item, first, second, judge = np.array(columns, dtype=np.int64).T
        found = cls(
            items=tuple(of_items),
            models=tuple(of_models),
            judges=tuple(of_judges),
            item=item,
            first=first,
            second=second,
            judge=judge,
            value=np.array(values),
            failed=failed,
        )
        found.check_connected()
        return found

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Pairs of models that met, the first-named first."""
        met = set(zip(self.first.tolist(), self.second.tolist(), strict=True))
        return [(a, b) for a, b in combinations(range(len(self.models)), 2) if met & {(a, b), (b, a)}]

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
        group = list(range(len(self.models)))
        for a, b in self.pairs:
            old, new = group[b], group[a]
            group = [new if each == old else each for each in group]
        groups: dict[int, list[str]] = {}
        for name, number in zip(self.models, group, strict=True):
            groups.setdefault(number, []).append(name)
        if len(groups) > 1:
            shown = "; ".join(", ".join(names) for names in groups.values())
            raise InvalidInputError(
                f"the models fall into {len(groups)} groups that were never compared with one another "
                f"({shown}), so they cannot be ranked together; compare one model of each group with one of "
                "another, or read each group by itself"
            )


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
