"""A long table of scores, one reading per row, as an array: the same rules for every format."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.errors import InvalidInputError, UnknownNameError, did_you_mean
from evalbudget.recorded._columns import FILLED, NAMES, NEEDED, TEXTS
from evalbudget.recorded._how_bought import HowBought
from evalbudget.recorded._places import Places
from evalbudget.recorded._scores import RecordedScores
from evalbudget.recorded._task_name import TaskName
from evalbudget.sampler import Allocation

FloatArray = NDArray[np.float64]

_FLAGS = {"true": 1.0, "false": 0.0}
_MOST_EPOCHS = 1e6


@dataclass(frozen=True)
class LongTable:
    """The columns in use.

    Attributes:
        texts: words, empty where missing, by the name of the column.
        numbers: numbers, NaN where missing; ``score`` is one of them.
        where: names a row, for messages.
    """

    texts: Mapping[str, Sequence[str]]
    numbers: Mapping[str, FloatArray]
    where: Callable[[int], str]

    def recorded_in(self, source: str) -> RecordedScores:
        """:meth:`recorded`, with messages that name where the table stands."""
        try:
            return self.recorded()
        except UnknownNameError as ex:
            raise UnknownNameError(f"{ex.kind.rstrip(':')} of {source}:", ex.name, ex.known) from None
        except InvalidInputError as ex:
            raise InvalidInputError(f"{source}: {ex}") from None

    def recorded(self) -> RecordedScores:
        """As an array, with what the table says of task, categories and how scores were bought.

        Raises:
            InvalidInputError: a row without what it needs, the same reading twice, or columns that
                contradict one another.
            UnknownNameError: no such allocation.
        """
        texts = {name: column for name, column in self.texts.items() if any(column)}
        for name in FILLED:
            if name in texts and not all(texts[name]):
                row = next(row for row, text in enumerate(texts[name]) if not text)
                raise InvalidInputError(f"{self.where(row)}: the {name} is empty; give every row one")
        if "item" not in texts:
            raise InvalidInputError("no row has an item; give every row one")
        costs = self.numbers.get("cost", np.empty(0))
        if (costs < 0.0).any():
            row = int(np.flatnonzero(costs < 0.0)[0])
            raise InvalidInputError(
                f"{self.where(row)}: cost {_shown(costs[row])!r} is below 0; give dollars, 0 or more"
            )
        places = Places.of(
            texts["item"],
            models=texts.get("model"),
            raters=texts.get("rater"),
            repeats=texts.get("repeat"),
            where=self.where,
        )
        purchases = self._purchases(places, texts)
        told = purchases is not None and any(p.allocation is not Allocation.FIXED for p in purchases)
        weighted = purchases is not None and any(p.allocation is Allocation.WEIGHTED for p in purchases)
        return RecordedScores(
            places.array(self.numbers["score"]),
            *places.names,
            categories=self._categories(places, texts),
            purchases=purchases,
            epochs=self._epochs(places) if told else None,
            weights=self._weights(places) if weighted else None,
            costs=places.array(costs) if np.isfinite(costs).any() else None,
            one_generation=self._flag("one_generation", otherwise=False),
            one_measure=self._flag("one_measure", otherwise=True),
            task=_task(texts, len(self.texts["item"])),
        )

    def _categories(self, places: Places, texts: Mapping[str, Sequence[str]]) -> tuple[str, ...] | None:
        if "category" not in texts:
            return None
        label: dict[str, str] = {}
        for item, category in zip(texts["item"], texts["category"], strict=True):
            if label.setdefault(item, category) != category:
                raise InvalidInputError(
                    f"item {item!r} is in {label[item]!r} and in {category!r}; give each item one category"
                )
        return tuple(label[item] for item in places.names[1])

    def _purchases(self, places: Places, texts: Mapping[str, Sequence[str]]) -> tuple[HowBought, ...] | None:
        """How each model's scores were bought; None where the table does not say."""
        if "allocation" not in texts:
            return None
        kinds = [kind.value for kind in Allocation]
        codes = {name: code for code, name in enumerate(kinds)}
        column = texts["allocation"]
        for row, name in enumerate(column):
            if name not in codes:
                raise UnknownNameError(f"allocation in {self.where(row)}:", name, kinds)
        of_rows = {"allocation": np.array([codes[name] for name in column], dtype=np.float64)}
        of_rows |= {name: self._column(name) for name in ("fixed_repeats", "model_cost", "model_usd")}
        told = {name: self._of_models(places, name, values) for name, values in of_rows.items()}
        return tuple(
            HowBought(
                Allocation(kinds[int(kind)]),
                0 if math.isnan(fixed) else int(fixed),
                None if math.isnan(cost) else cost,
                None if math.isnan(usd) else usd,
            )
            for kind, fixed, cost, usd in zip(*(values.tolist() for values in told.values()), strict=True)
        )

    def _of_models(self, places: Places, name: str, values: FloatArray) -> FloatArray:
        """The one value of each model, shape (models,)."""
        model = places.index[0]
        found = np.full(places.shape[0], np.nan)
        found[model] = values
        differs = ~((values == found[model]) | (np.isnan(values) & np.isnan(found[model])))
        if differs.any():
            row = int(np.flatnonzero(differs)[0])
            raise InvalidInputError(
                f"{self.where(row)}: {name} of model {places.names[0][model[row]]!r} differs from that in "
                "other rows; it says how all readings of a model were bought, so give each model one"
            )
        return found

    def _epochs(self, places: Places) -> NDArray[np.int64]:
        values = self._needed("epoch")
        wrong = ~((values >= 0.0) & (values < _MOST_EPOCHS)) | (values != np.floor(values))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InvalidInputError(
                f"{self.where(row)}: epoch {_shown(values[row])} is not a whole number from 0; number the "
                "readings of an item in the order in which they were bought"
            )
        # a reading's place where there is none
        epochs: NDArray[np.int64] = np.zeros(places.shape, dtype=np.int64)
        epochs[places.index] = values.astype(np.int64)
        return epochs

    def _weights(self, places: Places) -> FloatArray | None:
        values = self._needed("weight")
        if (values < 0.0).any():
            row = int(np.flatnonzero(values < 0.0)[0])
            raise InvalidInputError(
                f"{self.where(row)}: weight {_shown(values[row])!r} is below 0; give 0 or more, and leave it "
                "missing where the reading was held out"
            )
        return places.array(values) if np.isfinite(values).any() else None

    def _needed(self, name: str) -> FloatArray:
        if name not in self.numbers:
            raise InvalidInputError(
                f"there is no column {name}, which tells what may count where repeats depended on scores; "
                "give it, or leave the column allocation out if they did not"
            )
        return self.numbers[name]

    def _column(self, name: str) -> FloatArray:
        return self.numbers.get(name, np.full(len(self.numbers["score"]), np.nan))

    def _flag(self, name: str, *, otherwise: bool) -> bool:
        values = self._column(name)
        known = values[~np.isnan(values)]
        if known.size and not (known == known[0]).all():
            raise InvalidInputError(
                f"{name} is true in some rows and false in others; it is of the whole table"
            )
        return bool(known[0]) if known.size else otherwise


def columns_in(where: str, header: Sequence[str], category: str | None, layout: str) -> dict[str, int]:
    """Position of every column in use, by its name here; case and spaces around do not matter.

    What is told of how scores were bought, from ``epoch`` on, is read where there is ``allocation``.

    Args:
        where: names the table, for messages.
        header: names as they stand.
        category: the column that says what category an item belongs to; None for ``category``.
        layout: what a table of scores is, for messages.

    Raises:
        InvalidInputError: what is needed is missing, or stands twice.
    """
    names = [str(name).strip().lower() for name in header]
    known = NAMES if "allocation" in names else NAMES[: NAMES.index("epoch")]
    missing = [name for name in NEEDED if name not in names]
    if missing:
        single = [name for name in names if name.replace(" ", "_").isidentifier()]
        near = [did_you_mean(name, single) for name in missing]
        hint = next((f" ({said.strip()} Rename it.)" for said in near if said.startswith(" Did")), "")
        raise InvalidInputError(
            f"{where} has no column {' and no column '.join(missing)} "
            f"(found: {', '.join(map(str, header)) or 'none'}){hint}; a table of scores is {layout}"
        )
    for name in known:
        if names.count(name) > 1:
            raise InvalidInputError(f"{where} has {names.count(name)} columns named {name}; keep one")
    found = {name: names.index(name) for name in known if name in names and name != "category"}
    if category is not None and category.lower() not in names:
        raise InvalidInputError(
            f"{where} has no column {category} (found: {', '.join(map(str, header))}), which was to say what "
            "items belong together"
        )
    if (category or "category").lower() in names:
        found["category"] = names.index((category or "category").lower())
    return found


def long_table(
    columns: Mapping[str, Sequence[object] | NDArray[Any]],
    where: Callable[[int], str],
    remedy: str,
    source: str,
) -> LongTable:
    """From values as a program has them: numbers are numbers, and words are no scores.

    Args:
        columns: by name; numeric arrays are taken as they are.
        where: names a row, for messages.
        remedy: for a missing value, for example ``leave it empty``.
        source: names the table, for messages.

    Raises:
        InvalidInputError: a value that is no number where one is needed, with its row and column.
    """
    texts = {name: texts_of(values) for name, values in columns.items() if name in TEXTS}

    def named(row: int) -> str:
        return f"{source}, {where(row)}"

    numbers = {
        name: _numbers(name, values, named, remedy) for name, values in columns.items() if name not in TEXTS
    }
    return LongTable(texts, numbers, where)


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


def _numbers(
    name: str, values: Sequence[object] | NDArray[Any], where: Callable[[int], str], remedy: str
) -> FloatArray:
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        found: FloatArray = values.astype(np.float64)
    else:
        found = np.array([_number(name, value, where, row, remedy) for row, value in enumerate(values)])
    if np.isinf(found).any():
        row = int(np.flatnonzero(np.isinf(found))[0])
        raise InvalidInputError(f"{where(row)}: {name} {_shown(found[row])!r} is infinite; {remedy}")
    return found


def _number(name: str, value: object, where: Callable[[int], str], row: int, remedy: str) -> float:
    if value is None:
        return math.nan
    if isinstance(value, str) and value.lower() in _FLAGS and name.startswith("one_"):
        return _FLAGS[value.lower()]
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


def _shown(value: float) -> str:
    return f"{value:g}"


def _task(texts: Mapping[str, Sequence[str]], n: int) -> TaskName | None:
    """Of the whole table; None where it says nothing of one task."""
    names, versions = set(texts.get("task", [""] * n)), set(texts.get("version", [""] * n))
    if len(names) != 1 or len(versions) != 1 or "" in names:
        return None
    return TaskName(names.pop(), versions.pop() or None)
