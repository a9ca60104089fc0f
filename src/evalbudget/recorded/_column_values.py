"""What stands in the columns of a long table: which are in use, and their values as words and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.design import LARGEST
from evalbudget.errors import InvalidInputError, did_you_mean
from evalbudget.recorded._columns import ABSENT, FLAGS, NAMES, NEEDED, OTHER_NAMES, TRUTHS

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a table are in use.

    Attributes:
        at: position of each, by its name here.
        metrics: raters were found under the name of metrics.
        not_read: names of the others, as they stand.
        category: as it was asked for.
    """

    at: Mapping[str, int]
    metrics: bool
    not_read: tuple[str, ...]
    category: str | None


def columns_in(where: str, header: Sequence[str], category: str | None, layout: str) -> Columns:
    """The columns in use; case and spaces around do not matter.

    What is told of how scores were bought, from ``epoch`` on, is read where there is ``allocation``. Raters
    may stand in a column ``judge`` or ``metric``.

    Args:
        where: names the table, for messages.
        header: names as they stand.
        category: the column that says what category an item belongs to; None for ``category``.
        layout: what a table of scores is, for messages.

    Raises:
        InvalidInputError: what is needed is missing, or stands twice.
    """
    names = [str(name).strip().lower() for name in header]
    other = [name for name, ours in OTHER_NAMES.items() if name in names and ours not in names]
    if len(other) > 1:
        raise InvalidInputError(
            f"{where} has the columns {' and '.join(other)}, and judges of different metrics are no panel; "
            "keep the rows of one metric and drop that column, or give raters names of both"
        )
    named = [OTHER_NAMES[name] if name in other else name for name in names]
    known = NAMES if "allocation" in names else NAMES[: NAMES.index("epoch")]
    missing = [name for name in NEEDED if name not in names]
    if missing and {"first", "second"} <= {*names} and not {"winner", "value"}.isdisjoint(names):
        raise InvalidInputError(
            f"{where} is a table of preferences and not of scores, which evalbudget pairwise reads (found: "
            f"{', '.join(map(str, header))})"
        )
    if missing:
        single = [name for name in names if name.replace(" ", "_").isidentifier()]
        near = [did_you_mean(name, single) for name in missing]
        hint = next((f" ({said.strip()} Rename it.)" for said in near if said.startswith(" Did")), "")
        raise InvalidInputError(
            f"{where} has no column {' and no column '.join(missing)} "
            f"(found: {', '.join(map(str, header)) or 'none'}){hint}; a table of scores is {layout}"
        )
    for name in known:
        if named.count(name) > 1:
            raise InvalidInputError(f"{where} has {named.count(name)} columns named {name}; keep one")
    found = {name: named.index(name) for name in known if name in named and name != "category"}
    if category is not None and category.lower() not in names:
        raise InvalidInputError(
            f"{where} has no column {category} (found: {', '.join(map(str, header))}), which was to say what "
            "items belong together"
        )
    if (category or "category").lower() in names:
        found["category"] = names.index((category or "category").lower())
    used = set(found.values())
    not_read = tuple(str(name) for at, name in enumerate(header) if at not in used)
    return Columns(found, "metric" in other, not_read, category)


@contextmanager
def unless_of_others(name: str, notes: list[str]) -> Iterator[None]:
    """A column of a name that others use, too: where it is not what it is here, that is said of it."""
    try:
        yield
    except InvalidInputError as ex:
        notes.append(f"Column {name} was not read: {str(ex).partition(';')[0]}.")


def texts_of(values: Sequence[object] | NDArray[Any]) -> list[str]:
    """Values as words; empty where missing."""
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    return [value if isinstance(value, str) else _text(value) for value in listed]


def _text(value: object) -> str:
    if value is None or value != value:  # not a number
        return ""
    if isinstance(value, float) and value.is_integer():  # names that are numbers, beside a missing one
        return str(int(value))
    return str(value)


def numbers_of(
    name: str, values: Sequence[object] | NDArray[Any], where: Callable[[int], str], remedy: str
) -> FloatArray:
    """Values as numbers; NaN where missing.

    Args:
        name: of the column.
        values: as they stand.
        where: names a row, for messages.
        remedy: for a missing value.

    Raises:
        InvalidInputError: one is no number, or too large.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        found: FloatArray = values.astype(np.float64)
    else:
        found = np.array([_number(name, value, where, row, remedy) for row, value in enumerate(values)])
    if (infinite := np.flatnonzero(np.abs(found) > LARGEST)).size:
        row = int(infinite[0])
        told = f"'{found[row]:g}' is infinite or beyond {LARGEST:g}"
        raise InvalidInputError(f"{where(row)}: {name} {told}; {remedy}")
    return found


def _number(name: str, value: object, where: Callable[[int], str], row: int, remedy: str) -> float:
    if value is None or (isinstance(value, str) and value.strip().lower() in ABSENT):
        return math.nan
    if isinstance(value, str) and name in TRUTHS and value.strip().lower() in FLAGS:
        return FLAGS[value.strip().lower()]
    if not isinstance(value, str | bytes):
        try:
            return float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            pass
    kind = "text" if isinstance(value, str | bytes) else type(value).__name__
    raise InvalidInputError(
        f"{where(row)}: {name} is {str(value)[:40]!r} ({kind}), not a number; convert the column {name} to "
        f"numbers, and {remedy}"
    )
