"""Recorded scores as the arrays of a file, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalbudget.design import LARGEST
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.recorded._declared import Declared
from evalbudget.recorded._how_bought import HowBought
from evalbudget.sampler import Allocation
from evalbudget.statistics._strata import Strata

FloatArray = NDArray[np.floating[Any]]

_SMALLEST = 1e-60
"""Of what is not read as 0: powers of smaller numbers are."""

AXES = "(models, items, raters, repeats)"
AS_THEY_ARE = ("reference", "epochs", "phases", "costs", "failed", "outside")
"""Arrays, or None, that a file keeps under their own names."""
_OF_RATERS = ("lower_is_better", "range_low", "range_high")


def fields_in(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """What recorded scores are made of, from arrays among which there are scores.

    Raises:
        InvalidInputError: an array holds something else.
    """
    scores = arrays["scores"]
    names = {
        name: _labels(name, arrays[name])
        if name in arrays
        else tuple(str(i) for i in range(scores.shape[axis] if axis < scores.ndim else 0))
        for axis, name in enumerate(("models", "items", "raters"))
    }
    return {
        "scores": scores,
        **names,
        **{name: arrays.get(name) for name in AS_THEY_ARE},
        "categories": _labels("categories", arrays["categories"]) if "categories" in arrays else None,
        "purchases": _purchases(arrays),
        "declared": _declared(arrays, tuple(names.values())),
        "strata": _strata(arrays),
        "by_category": bool(np.any(arrays.get("by_category", False))),
        "one_generation": bool(np.all(arrays.get("one_generation", False))),
        "one_measure": bool(np.all(arrays.get("one_measure", True))),
        "may_be_empty": scores.dtype.kind in "fiub" and bool(np.isnan(scores).all()),
    }


def declared_as_arrays(declared: Declared) -> dict[str, NDArray[Any]]:
    """What a file keeps of what the source said; settings are in the models' names."""
    directions = [np.nan if lower is None else float(lower) for lower in declared.lower_is_better]
    ranges = np.array([(np.nan, np.nan) if known is None else known for known in declared.ranges])
    found = dict(zip(_OF_RATERS, (np.array(directions), *ranges.T), strict=True))
    found["complete"] = np.array(declared.complete)
    found["digests"] = np.array(declared.digests)
    if declared.clusters is not None:
        found |= {"clusters": np.array(declared.clusters), "cluster": np.array([declared.cluster])}
    if declared.clustered:
        found["clustered"] = np.array(declared.clustered)
    if declared.direction_missing:
        found["direction_missing"] = np.array(True)
    return found


def bought_as_arrays(purchases: Sequence[HowBought]) -> dict[str, NDArray[Any]]:
    """How each model's scores were bought, as a file keeps it."""
    arrays = {
        "allocation": np.asarray([p.allocation.value for p in purchases]),
        "fixed_repeats": np.asarray([p.fixed_repeats for p in purchases]),
    }
    for name in ("cost", "usd"):
        known = [getattr(p, name) for p in purchases]
        arrays[name] = np.asarray([np.nan if value is None else value for value in known])
    sizes = [p.phase_sizes for p in purchases]
    if any(sizes):
        arrays["phase_sizes"] = np.array(list(zip_longest(*sizes, fillvalue=np.nan))).T
    return arrays


def _declared(arrays: Mapping[str, NDArray[Any]], names: tuple[tuple[str, ...], ...]) -> Declared | None:
    if not {*_OF_RATERS, "complete", "digests"} <= set(arrays):
        return None
    models, items, raters = names
    lower, low, high = (floats(name, arrays[name]).tolist() for name in _OF_RATERS)
    clusters = _labels("clusters", arrays["clusters"]) if "clusters" in arrays else None
    return Declared(
        ({},) * len(models),
        tuple(bool(whole) for whole in arrays["complete"]),
        tuple(None if np.isnan(way) else bool(way) for way in lower),
        tuple(None if np.isnan(a) else (a, b) for a, b in zip(low, high, strict=True)),
        (None,) * len(raters),
        _labels("digests", arrays["digests"]) or ("",) * len(items),
        clusters,
        _labels("cluster", arrays["cluster"])[0] if clusters is not None else None,
        clustered=tuple(bool(by) for by in arrays.get("clustered", ())),
        direction_missing=bool(np.any(arrays.get("direction_missing", False))),
    )


def _strata(arrays: Mapping[str, NDArray[Any]]) -> Strata | None:
    if not {"strata", "strata_sizes"} <= set(arrays):
        return None
    of_item, sizes = (floats(name, arrays[name]) for name in ("strata", "strata_sizes"))
    return Strata(of_item.astype(np.int64), sizes.astype(np.int64))


def _purchases(arrays: Mapping[str, NDArray[Any]]) -> tuple[HowBought, ...] | None:
    if "allocation" not in arrays:
        return None
    names = _labels("allocation", arrays["allocation"])
    n = len(names)
    columns = {
        name: floats(name, arrays.get(name, np.full(n, default)))
        for name, default in (("fixed_repeats", 0.0), ("cost", np.nan), ("usd", np.nan))
    }
    for name, column in columns.items():
        if column.shape != (n,):
            raise InvalidInputError(f"{name} has shape {column.shape}; it must have one entry per model")
    if not (columns["fixed_repeats"] >= 0).all():
        raise InvalidInputError("fixed_repeats must be 0 or more for every model")
    for name in names:
        if name not in list(Allocation):
            raise UnknownNameError("allocation", name, [a.value for a in Allocation])
    sizes = floats("phase_sizes", arrays.get("phase_sizes", np.empty((n, 0))))
    if sizes.ndim != 2 or len(sizes) != n:
        raise InvalidInputError(f"phase_sizes has shape {sizes.shape}; it must be ({n} models, phases)")
    return tuple(
        HowBought(
            Allocation(name),
            int(fixed),
            None if np.isnan(cost) else cost,
            None if np.isnan(usd) else usd,
            tuple(own[~np.isnan(own)].tolist()),
        )
        for name, own, fixed, cost, usd in zip(
            names, sizes, *(c.tolist() for c in columns.values()), strict=True
        )
    )


def floats(name: str, values: ArrayLike) -> FloatArray:
    """Numbers as they are kept.

    Raises:
        InvalidInputError: they are none, or one is infinite or too large.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise InvalidInputError(
            f"{name} holds {array.dtype} values; it must be float32 or float64, NaN = missing"
        )
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float64 if array.dtype.itemsize > 4 else np.float32)
    if (infinite := np.argwhere(np.abs(array) > LARGEST)).size:
        place = tuple(infinite[0].tolist())
        raise InvalidInputError(
            f"{name} is infinite or beyond {LARGEST:g} at {place}; write NaN for a score that is missing"
        )
    tiny = (np.abs(array) < _SMALLEST) & (array != 0)
    return np.where(tiny, array.dtype.type(0), array) if tiny.any() else array


def _labels(name: str, array: NDArray[Any]) -> tuple[str, ...]:
    if array.ndim != 1:
        raise InvalidInputError(f"{name} has shape {array.shape}; it must be a list of names")
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError as ex:
            raise InvalidInputError(f"{name} holds bytes that are not UTF-8; save names as strings") from ex
    return tuple(str(label) for label in array.tolist())
