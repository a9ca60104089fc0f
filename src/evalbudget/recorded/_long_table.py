"""A long table of scores, one reading per row, as an array: the same rules for every format."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.errors import InvalidInputError, UnknownNameError, did_you_mean
from evalbudget.recorded._column_values import Columns, numbers_of, texts_of, unless_of_others
from evalbudget.recorded._columns import FILLED, HIGHER, OFTEN_OTHERS, TEXTS
from evalbudget.recorded._declared import UNKNOWN, Declared, Settings, columns_not_read, settings_in
from evalbudget.recorded._how_bought import HowBought
from evalbudget.recorded._places import Places
from evalbudget.recorded._scores import RecordedScores
from evalbudget.recorded._task_name import TaskName
from evalbudget.sampler import Allocation
from evalbudget.statistics._strata import Strata

FloatArray = NDArray[np.float64]

_MOST_EPOCHS = 1e6
_WAYS = {"lower": 1.0, "higher": 0.0, UNKNOWN: np.nan}
_HIGHER = {**dict.fromkeys(("true", "1", "1.0"), "higher"), **dict.fromkeys(("false", "0", "0.0"), "lower")}


@dataclass(frozen=True)
class LongTable:
    """The columns in use.

    Attributes:
        texts: words, empty where missing, by the name of the column.
        numbers: numbers, NaN where missing; ``score`` is one of them.
        where: names a row, for messages.
        metrics: the raters are metrics, whose mean means nothing, unless the table says otherwise.
        not_read: columns that nothing reads.
        notes: on those that are somebody else's, under a name of ours.
        category: the column that was chosen to say what items belong together; None for the usual one.
    """

    texts: Mapping[str, Sequence[str]]
    numbers: Mapping[str, FloatArray]
    where: Callable[[int], str]
    metrics: bool = False
    not_read: Sequence[str] = ()
    notes: Sequence[str] = ()
    category: str | None = None

    def recorded_in(self, source: str, task: str | None = None) -> RecordedScores:
        """:meth:`recorded`, with messages that name where the table stands.

        Args:
            source: where.
            task: of several, the one to read; None for the only one.
        """
        try:
            return self._of_task(task).recorded()
        except UnknownNameError as ex:
            raise UnknownNameError(f"{ex.kind.rstrip(':')} of {source}:", ex.name, ex.known) from None
        except InvalidInputError as ex:
            raise InvalidInputError(f"{source}: {ex}") from None

    def _of_task(self, task: str | None) -> LongTable:
        """The rows of one task: several have no mean, and each may have items of the same names."""
        column = self.texts.get("task", ())
        known = list(dict.fromkeys(name for name in column if name))
        if task is None:
            if len(known) > 1:
                raise InvalidInputError(
                    f"there are {len(known):,} tasks in the column task ({', '.join(known[:4])}"
                    f"{', ...' if len(known) > 4 else ''}), which have no mean together; name one of them, "
                    f"for example --task {known[0]}, or give the column another name if they are parts of one"
                )
            return self
        if not known:
            raise InvalidInputError(f"there is no column task, so there is no {task!r}; leave --task out")
        if task not in known:
            raise UnknownNameError("task", task, known)
        kept = [row for row, name in enumerate(column) if name == task]
        return replace(
            self,
            texts={name: [words[row] for row in kept] for name, words in self.texts.items()},
            numbers={name: values[kept] for name, values in self.numbers.items()},
            where=lambda row: self.where(kept[row]),
        )

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
                raise InvalidInputError(self._gaps(name, texts))
        if "item" not in texts:
            raise InvalidInputError("no row has an item; give every row one")
        costs = self.numbers.get("cost", np.empty(0))
        if (costs < 0.0).any():
            row = int(np.flatnonzero(costs < 0.0)[0])
            raise InvalidInputError(
                f"{self.where(row)}: cost '{costs[row]:g}' is below 0; give dollars, 0 or more"
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
        phased = purchases is not None and any(p.allocation is Allocation.PHASED for p in purchases)
        scores = places.array(self.numbers["score"])
        return RecordedScores(
            scores,
            *places.names,
            categories=self._categories(places, texts),
            purchases=purchases,
            epochs=self._epochs(places) if told else None,
            phases=self._phases(places) if phased else None,
            costs=places.array(costs) if np.isfinite(costs).any() else None,
            failed=self._failed(places),
            outside=self._outside(places),
            declared=self._declared(places, texts),
            strata=self._strata(places),
            by_category=self._flag("by_category", otherwise=False),
            one_generation=self._flag("one_generation", otherwise=False),
            one_measure=self._flag("one_measure", otherwise=not self.metrics),
            task=_task(texts, len(self.texts["item"])),
            may_be_empty=bool(np.isnan(scores).all()),
        )

    def _gaps(self, name: str, texts: Mapping[str, Sequence[str]]) -> str:
        """What to say of a column that is empty in some rows."""
        rows = [row for row, text in enumerate(texts[name]) if not text]
        chosen = self.category if name == "category" else None
        whose = f" of item {texts['item'][rows[0]]!r}" if name != "item" and "item" in texts else ""
        more = f", as in {len(rows) - 1:,} more row{'s' * (len(rows) > 2)}" if len(rows) > 1 else ""
        instead = "" if chosen is None else ", or leave --cluster (in Python: category) out"
        told = f"{self.where(rows[0])}: the {chosen or name}{whose} is empty{more}"
        return f"{told}; give every row one{instead}"

    def _failed(self, places: Places) -> NDArray[np.int64] | None:
        """Rows without a score, shape (models, items, raters), but those that only stand for a name."""
        failed: NDArray[np.int64] = np.zeros(places.shape[:3], dtype=np.int64)
        lost = np.isnan(self.numbers["score"]) & (self._column("failed") != 0.0) & ~self._not_applicable
        np.add.at(failed, tuple(axis[lost] for axis in places.index[:3]), 1)
        return failed if lost.any() else None

    def _outside(self, places: Places) -> NDArray[np.bool_] | None:
        """Where the table says that no score applies, shape (models, items, raters)."""
        outside: NDArray[np.bool_] = np.zeros(places.shape[:3], dtype=np.bool_)
        outside[tuple(axis[self._not_applicable] for axis in places.index[:3])] = True
        return outside if outside.any() else None

    @property
    def _not_applicable(self) -> NDArray[np.bool_]:
        """Rows without a score since none applies."""
        return np.asarray(np.isnan(self.numbers["score"]) & (self._column("not_applicable") == 1.0))

    def _declared(self, places: Places, texts: Mapping[str, Sequence[str]]) -> Declared | None:
        """None where the table declares nothing."""
        models, items, raters = places.names
        notes = [*columns_not_read(self.not_read, repeats=self._has_unnumbered_repeats(places)), *self.notes]
        ranges = []
        for name in ("score_low", "score_high"):
            ranges.append(np.full(len(raters), np.nan))
            with unless_of_others(name, notes):
                ranges[-1] = self._of(places, 2, name, self._column(name))
        low, high = ranges
        ways = self._directions(texts, notes)
        better = self._of(places, 2, "better", _ways(ways, len(texts["item"]), self.where))
        complete = np.full(len(models), np.nan)
        with unless_of_others("complete", notes):
            complete = self._of(places, 0, "complete", self._column("complete"))
        notes += self._not_asked(places, complete == 1.0)
        of_items: dict[str, dict[str, str] | None] = {}
        for name in ("digest", "cluster"):
            with unless_of_others(name, notes):
                of_items[name] = self._of_items(name, texts)
        told: list[tuple[int, str, Settings]] = []
        with unless_of_others("settings", notes):
            told = self._settings(models, texts)
        settings = self._agreed(told)
        clusters, alone = of_items.get("cluster"), self._unclustered(texts)
        if clusters is not None and not all(clusters.values()):
            clusters = None
            notes.append("Column cluster was not read: some items have none.")
        known = zip(raters, low.tolist(), high.tolist(), strict=True)
        found = Declared.of(
            models,
            items,
            raters,
            settings=settings,
            complete=[name for name, whole in zip(models, complete.tolist(), strict=True) if whole == 1.0],
            lower_is_better={
                name: bool(way) for name, way in zip(raters, better.tolist(), strict=True) if way == way
            },
            ranges={name: (a, b) for name, a, b in known if a < b},
            digests=of_items.get("digest"),
            clusters=clusters,
            cluster="cluster",
            unclustered=alone,
            notes=notes,
            direction_missing=UNKNOWN in ways or self.metrics,
        )
        return None if found == Declared.of(models, items, raters) else found

    def _has_unnumbered_repeats(self, places: Places) -> bool:
        """Whether rows count as repeats since no column that is read tells them apart."""
        return places.shape[3] > 1 and not any(self.texts.get("repeat", ()))

    def _directions(self, texts: Mapping[str, Sequence[str]], notes: list[str]) -> list[str]:
        """What each row says of which way is better; nothing where no column says that.

        Raises:
            InvalidInputError: two columns contradict each other.
        """
        told = [text.lower() for text in texts.get("better", ())]
        if not any(did_you_mean(way, _WAYS).startswith(" Did") for way in set(told)):
            notes += columns_not_read(["better"] if told else [])
            told = []
        higher = [text.lower() for text in texts.get(HIGHER, ())]
        if not {*higher} <= {"", *_HIGHER}:
            notes += columns_not_read([HIGHER])
            higher = []
        ways = [_HIGHER.get(text, "") for text in higher]
        for row, (one, other) in enumerate(zip(told, ways, strict=False)):
            if one and other and one != other:
                raise InvalidInputError(
                    f"{self.where(row)}: better is {one!r}, and {HIGHER} {higher[row]!r}; keep one"
                )
        return (
            [one or other for one, other in zip(told, ways, strict=True)] if told and ways else told or ways
        )

    def _settings(
        self, models: Sequence[str], texts: Mapping[str, Sequence[str]]
    ) -> list[tuple[int, str, Settings]]:
        """What models were evaluated with: the first row that says so, the model, and its settings."""
        told = texts.get("settings", [""] * len(texts["item"]))
        owners = texts.get("model", [models[0]] * len(told))
        first: dict[tuple[str, str], int] = {}
        for row, known in enumerate(zip(owners, told, strict=True)):
            first.setdefault(known, row)
        return [
            (row, model, settings_in(text, self.where(row))) for (model, text), row in first.items() if text
        ]

    def _agreed(self, told: Sequence[tuple[int, str, Settings]]) -> dict[str, Settings]:
        """Of each model that has some, its settings.

        Raises:
            InvalidInputError: rows of a model say different ones.
        """
        agreed: dict[str, Settings] = {}
        for row, model, settings in told:
            if agreed.setdefault(model, settings) != settings:
                one, other = (
                    json.dumps(dict(each), ensure_ascii=False) for each in (settings, agreed[model])
                )
                raise InvalidInputError(
                    f"{self.where(row)}: settings of model {model!r} are {one}, and {other} in a row before; "
                    "give answers by other settings another model's name"
                )
        return agreed

    def _not_asked(self, places: Places, complete: NDArray[np.bool_]) -> list[str]:
        """Which models were not asked everything, as the table says itself."""
        models, items, _ = places.names
        row = ~np.isnan(self.numbers["score"]) | (self._column("failed") != 0.0) | self._not_applicable
        asked = np.zeros(places.shape[:2], dtype=bool)
        asked[places.index[0][row], places.index[1][row]] = True
        lacks = np.where(complete, (~asked).sum(axis=1), 0)
        return [
            f"By the column complete, {model} was not asked {n:,} of the {len(items):,} items."
            for model, n in zip(models, lacks.tolist(), strict=True)
            if n
        ]

    def _unclustered(self, texts: Mapping[str, Sequence[str]]) -> set[str]:
        """Raters none of whose rows has a cluster, where others' have."""
        if "cluster" not in texts or "rater" not in texts:
            return set()
        pairs = set(zip(texts["rater"], map(bool, texts["cluster"]), strict=True))
        having = {rater for rater, by in pairs if by}
        return {rater for rater, _ in pairs} - having if having else set()

    def _of_items(self, name: str, texts: Mapping[str, Sequence[str]]) -> dict[str, str] | None:
        """The one label of each item, by its name; None where there is no such column."""
        if name not in texts:
            return None
        label: dict[str, str] = {}
        alone = self._unclustered(texts) if name == "cluster" else set()
        raters = texts.get("rater", texts["item"])
        for item, rater, told in zip(texts["item"], raters, texts[name], strict=True):
            if rater in alone:
                continue
            if label.setdefault(item, told) != told:
                raise InvalidInputError(
                    f"item {item!r} has the {name} {label[item]!r} and {told!r}; give each item one"
                )
        return label

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
        told = {name: self._of(places, 0, name, values) for name, values in of_rows.items()}
        words = texts.get("phase_sizes", [""] * len(column))
        of_models = dict(zip(places.index[0].tolist(), range(len(column)), strict=True))
        sizes = [self._phase_sizes(row, words[row]) for _, row in sorted(of_models.items())]
        return tuple(
            HowBought(
                Allocation(kinds[int(kind)]),
                0 if math.isnan(fixed) else int(fixed),
                None if math.isnan(cost) else cost,
                None if math.isnan(usd) else usd,
                own,
            )
            for kind, fixed, cost, usd, own in zip(*(v.tolist() for v in told.values()), sizes, strict=True)
        )

    def _phase_sizes(self, row: int, text: str) -> tuple[float, ...]:
        with suppress(ValueError):
            sizes = tuple(map(float, text.split()))
            if all(0.0 <= size < math.inf for size in sizes):
                return sizes
        raise InvalidInputError(
            f"{self.where(row)}: phase_sizes is {text[:40]!r}; give numbers from 0 with spaces between them"
        )

    def _strata(self, places: Places) -> Strata | None:
        """Those that the items were drawn from; None where the table does not say of each."""
        of_item, size = (
            self._of(places, 1, name, self._column(name)) for name in ("stratum", "stratum_items")
        )
        if np.isnan(of_item).any() or np.isnan(size).any():
            return None
        _, first, number = np.unique(of_item, return_index=True, return_inverse=True)
        return Strata(number, size[first].astype(np.int64))

    def _of(self, places: Places, axis: int, name: str, values: FloatArray) -> FloatArray:
        """The one value of each model (axis 0) or rater (2), shape (names,); NaN where no row has one."""
        number = places.index[axis]
        known = ~np.isnan(values)
        found = np.full(places.shape[axis], np.nan)
        found[number[known]] = values[known]
        differs = known & (values != found[number])
        if differs.any():
            row = int(np.flatnonzero(differs)[0])
            kind, whose = ("model", "item", "rater")[axis], places.names[axis][number[row]]
            raise InvalidInputError(
                f"{self.where(row)}: {name} of {kind} {whose!r} differs from that in other rows; it is "
                f"of all readings of a {kind}, so give each {kind} one"
            )
        return found

    def _epochs(self, places: Places) -> NDArray[np.int64]:
        values = self._needed("epoch")
        wrong = ~((values >= 0.0) & (values < _MOST_EPOCHS)) | (values != np.floor(values))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InvalidInputError(
                f"{self.where(row)}: epoch {values[row]:g} is not a whole number from 0; number the "
                "readings of an item in the order in which they were bought"
            )
        # a reading's place where there is none
        epochs: NDArray[np.int64] = np.zeros(places.shape, dtype=np.int64)
        epochs[places.index] = values.astype(np.int64)
        return epochs

    def _phases(self, places: Places) -> FloatArray | None:
        values = self._needed("phase")
        wrong = (values < 0.0) | (np.isfinite(values) & (values != np.floor(values)))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InvalidInputError(
                f"{self.where(row)}: phase {values[row]:g} is not a whole number from 0; give the "
                "phase in which the reading was bought"
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


def long_table(
    columns: Mapping[str, Sequence[object] | NDArray[Any]],
    used: Columns,
    where: Callable[[int], str],
    remedy: str,
    source: str,
) -> LongTable:
    """From values as a program has them: numbers are numbers, and words are no scores.

    Args:
        columns: by name; numeric arrays are taken as they are.
        used: which they are.
        where: names a row, for messages.
        remedy: for a missing value, for example ``leave it empty``.
        source: names the table, for messages.

    Raises:
        InvalidInputError: a value that is no number where one is needed, with its row and column.
    """
    texts = {name: texts_of(values) for name, values in columns.items() if name in TEXTS}

    def named(row: int) -> str:
        return f"{source}, {where(row)}"

    notes: list[str] = []
    numbers: dict[str, FloatArray] = {}
    for name, values in columns.items():
        if name in OFTEN_OTHERS:
            with unless_of_others(name, notes):
                numbers[name] = numbers_of(name, values, where, remedy)
        elif name not in TEXTS:
            numbers[name] = numbers_of(name, values, named, remedy)
    return LongTable(texts, numbers, where, used.metrics, used.not_read, notes, used.category)


def _ways(texts: Sequence[str], n: int, where: Callable[[int], str]) -> FloatArray:
    """1 for rows whose lower scores are better, 0 for higher, NaN for those that say nothing, shape (n,)."""
    found = np.full(n, np.nan)
    for row, text in enumerate(texts):
        if text and text not in _WAYS:
            raise UnknownNameError(f"direction in {where(row)}:", text, list(_WAYS))
        found[row] = _WAYS.get(text, np.nan)
    return found


def _task(texts: Mapping[str, Sequence[str]], n: int) -> TaskName | None:
    """Of the whole table; None where it says nothing of one task.

    Raises:
        InvalidInputError: it is of several versions.
    """
    names, versions = set(texts.get("task", [""] * n)), set(texts.get("version", [""] * n))
    if len(names) != 1 or "" in names:
        return None
    if len(versions - {""}) > 1:
        raise InvalidInputError(
            f"task {names.pop()} has the versions {' and '.join(sorted(versions - {''})[:4])}, whose items "
            "may differ under the same names; keep the rows of one"
        )
    if len(versions) != 1:
        return None
    return TaskName(names.pop(), versions.pop() or None)
