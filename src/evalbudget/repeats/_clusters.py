"""Which items belong together, by a field: items of one cluster are not independent of each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.statistics._bounds import IntArray

_SHOWN = 5


def has_no_value(value: object) -> bool:
    """Whether a field says nothing: it is not there, or is nan."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def cluster_numbers(values: Sequence[object]) -> IntArray | None:
    """Number of each item's cluster, in order of appearance; None if an item has none.

    Args:
        values: of the field; items with the same value are of one cluster.
    """
    if any(map(has_no_value, values)):
        return None
    numbers: dict[object, int] = {}
    keys = (value if isinstance(value, str | int | float) else repr(value) for value in values)
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def require_clusters(
    values: Sequence[object],
    field: str,
    names: Sequence[str],
    *,
    known: Iterable[str],
    said: str = "",
    what: str = "item",
) -> IntArray:
    """As :func:`cluster_numbers`, where every item must have one.

    Args:
        values: of the field, one per item.
        field: its name.
        names: of the items.
        known: fields that items have, for the message.
        said: who said that it makes the clusters; empty for the user, by ``--cluster``.
        what: an item is called here.

    Raises:
        InvalidInputError: an item has none; says which, and the remedy.
    """
    found = cluster_numbers(values)
    if found is not None:
        return found
    without = [name for name, value in zip(names, values, strict=True) if has_no_value(value)]
    who = said or f"--cluster {field}"
    drop = f"take cluster={field!r} out of the metric" if said else "drop --cluster"
    if len(without) == len(values):
        fields = ", ".join(sorted(set(known))[:8])
        there = f"they have {fields}; name one of these" if fields else "they have none at all"
        raise InvalidInputError(f"{who}: no {what} has a field {field!r}: {there}, or {drop}")
    more = ", ..." if len(without) > _SHOWN else ""
    raise InvalidInputError(
        f"{who}: {len(without):,} of the {len(values):,} {what}s have no field {field!r} "
        f"({', '.join(without[:_SHOWN])}{more}), so that nobody knows which others they belong to. Give "
        f"every {what} one, leave these out, or {drop}"
    )
