"""A folder of Parquet files, one long table: streamed in batches into arrays that are mapped."""

from __future__ import annotations

import math
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from evalbudget.errors import InvalidInputError
from evalbudget.recorded._blocks import blocks
from evalbudget.recorded._columns import NAMES
from evalbudget.recorded._declared import Declared, columns_not_read
from evalbudget.recorded._frame_table import EXTRA, LAYOUT, read_frame
from evalbudget.recorded._long_table import columns_in, texts_of
from evalbudget.recorded._parquet_table import dataset_of, table_of
from evalbudget.recorded._places import counted, ranked
from evalbudget.recorded._scores import RecordedScores
from evalbudget.untrusted import is_plain_file

IntArray = NDArray[np.int64]

STREAMED = 2_000_000
"""Rows up to which the folder is read like one table."""

_BATCH = 1 << 18
_AXES = ("model", "item", "rater")
_KNOWN = (*_AXES, "repeat", "score", "cost", "category")
_MOST_UNNUMBERED = 255


def is_parquet_folder(path: Path) -> bool:
    """Whether there are Parquet files in it, or in folders of it."""
    return path.is_dir() and next(path.rglob("*.parquet"), None) is not None


def read_parquet_folder(
    path: Path, *, category: str | None = None, task: str | None = None
) -> RecordedScores:
    """Read all ``.parquet`` files of a folder as one table of readings.

    A large one is written to arrays in a temporary folder, which are mapped and go with the scores.

    Raises:
        InvalidInputError: pyarrow is not installed, a file is damaged or has other columns, or as
            :func:`read_frame` does.
    """
    try:
        import pyarrow as pa
    except ImportError as ex:
        raise InvalidInputError(f"{path}: a folder of Parquet files is read by pyarrow: {EXTRA}") from ex
    strange = [file for file in path.rglob("*.parquet") if not file.is_dir() and not is_plain_file(file)]
    if strange:
        raise InvalidInputError(
            f"{strange[0]} is no file, but a pipe, a device, a socket or a broken link; move it away"
        )
    try:
        table = dataset_of(path)
        _same_columns(table)
        if table.count_rows() <= STREAMED:
            return read_frame(table_of(table, path), category=category, task=task, source=f"{path}")
        streamed = _Streamed(table, path, category)
        if task is not None:
            raise InvalidInputError(f"{path} has no column task, so there is no {task!r}; leave --task out")
        return streamed.recorded()
    except InvalidInputError:
        raise
    except (pa.ArrowException, OSError) as ex:
        told = (str(ex) or type(ex).__name__).splitlines()[0]
        raise InvalidInputError(f"{path}: {told}; write or download that file again") from ex


def _same_columns(table: Any) -> None:
    """Refuse files with other columns than the first: what lacks would be read as missing."""
    first: tuple[str, dict[str, str]] | None = None
    for fragment in table.get_fragments():
        told = {field.name: str(field.type) for field in fragment.physical_schema}
        used = {name: kind for name, kind in told.items() if name.strip().lower() in NAMES}
        if first is None:
            first = fragment.path, used
        elif used != first[1]:
            differs = sorted(set(used.items()) ^ set(first[1].items()))[0][0]
            raise InvalidInputError(
                f"{fragment.path} has column {differs} as {used.get(differs, 'nothing')}, and {first[0]} as "
                f"{first[1].get(differs, 'nothing')}; give all files of the folder the same columns"
            )


@dataclass(frozen=True)
class _Rows:
    """One batch: codes of its names, shape (rows,) each, its numbers, and the number of its first row."""

    codes: Mapping[str, IntArray]
    numbers: Mapping[str, NDArray[np.float64]]
    first: int


class _Streamed:
    """A table that is gone through several times.

    Args:
        table: a dataset of pyarrow.
        path: of its folder.
        category: the column that says what category an item belongs to.
    """

    def __init__(self, table: Any, path: Path, category: str | None) -> None:
        self._table, self._path = table, path
        header: list[str] = table.schema.names
        used = columns_in(f"{path}", header, category, LAYOUT)
        found, self._metrics, self._not_read = used.at, used.metrics, used.not_read
        more = sorted(set(found) - set(_KNOWN))
        if more:
            raise InvalidInputError(
                f"{path} has more than {STREAMED:,} rows and the column {more[0]}, which is read of "
                f"smaller tables only; split the folder by model, or leave it out (found: {', '.join(more)})"
            )
        self._columns = {name: header[at] for name, at in found.items()}
        self._types = {name: table.schema.field(column).type for name, column in self._columns.items()}
        import pyarrow as pa

        for name in {"score", "cost"} & set(self._types):
            kind = self._types[name]
            kind = kind.value_type if pa.types.is_dictionary(kind) else kind
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
                raise InvalidInputError(
                    f"{path}: the column {name} is {kind}, not numbers; convert it, and leave it missing "
                    "(null or NaN) where there is none"
                )
        self._codes: dict[str, dict[str, int]] = {
            name: {} for name in (*_AXES, "repeat", "category") if name in self._columns
        }

    def _declared(self, names: Mapping[str, Sequence[str]]) -> Declared:
        return Declared.of(*(names[axis] for axis in _AXES), notes=columns_not_read(self._not_read))

    def recorded(self) -> RecordedScores:
        """The scores, in a temporary folder that is removed when nothing uses them any more."""
        for _ in self._batches(("model", "item", "rater", "repeat"), grow=True):
            pass
        names = {axis: tuple(self._codes[axis]) if axis in self._codes else (axis,) for axis in _AXES}
        folder = Path(tempfile.mkdtemp(prefix="evalbudget-"))
        try:
            shape = (*(len(names[axis]) for axis in _AXES), self._repeats(folder, names))
            scores, costs = self._written(folder, names, shape)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        weakref.finalize(scores.base, shutil.rmtree, folder, ignore_errors=True)
        return RecordedScores(
            scores,
            names["model"],
            names["item"],
            names["rater"],
            categories=self._categories(names["item"]),
            costs=costs,
            one_measure=not self._metrics,
            declared=self._declared(names) if self._not_read else None,
        )

    def _batches(self, columns: Sequence[str], *, grow: bool = False) -> Iterator[_Rows]:
        wanted = {name: self._columns[name] for name in columns if name in self._columns}
        first = 0
        for batch in self._read(list(wanted.values())):
            if not batch.num_rows:
                continue
            codes, numbers = {}, {}
            for name, column in wanted.items():
                values = batch.column(column)
                if name in self._codes:
                    codes[name] = self._coded(name, values, first, grow)
                else:
                    numbers[name] = values.cast("float64").to_numpy(zero_copy_only=False)
            yield _Rows(codes, numbers, first)
            first += batch.num_rows

    def _read(self, columns: list[str]) -> Iterator[Any]:
        for fragment in self._table.get_fragments():
            for group in fragment.split_by_row_group():  # all of them at once would be read far ahead
                yield from group.to_batches(
                    schema=self._table.schema, columns=columns, batch_size=_BATCH, use_threads=False
                )

    def _coded(self, name: str, values: Any, first: int, grow: bool) -> IntArray:
        empty = values.is_null().to_numpy(zero_copy_only=False)
        if empty.any():
            row = first + int(np.argmax(empty))
            raise InvalidInputError(
                f"{self._path}, row {row} (from 0): the {name} is empty; give every row one"
            )
        encoded = values if hasattr(values, "dictionary") else values.dictionary_encode()
        # words that no row has are none; long ones are not written out for every row
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        used, rows, at = np.unique(indices, return_index=True, return_inverse=True)
        words = texts_of(encoded.dictionary.take(used).to_pylist())
        known = self._codes[name]
        of_words = np.zeros(used.size, dtype=np.int64)
        for place in np.argsort(rows):
            word = words[place]
            of_words[place] = known.setdefault(word, len(known)) if grow else known[word]
        codes: IntArray = of_words[at.ravel()]
        return codes

    def _cells(self, rows: _Rows, names: Mapping[str, tuple[str, ...]]) -> IntArray:
        """Number of each row's cell, in the order of the array."""
        cell: IntArray = np.zeros(1, dtype=np.int64)
        for axis in _AXES:
            cell = cell * len(names[axis]) + rows.codes.get(axis, 0)
        return cell

    def _repeats(self, folder: Path, names: Mapping[str, tuple[str, ...]]) -> int:
        if "repeat" in self._codes:
            return len(self._codes["repeat"])
        cells = math.prod(len(each) for each in names.values())
        self._require_room(folder, cells)
        count = open_memmap(folder / "count.npy", "w+", np.uint8, (cells,))
        for rows in self._batches(_AXES):
            cell = self._cells(rows, names)
            if (count[cell] > _MOST_UNNUMBERED - np.unique(cell, return_counts=True)[1].max()).any():
                raise InvalidInputError(
                    f"{self._path} may have more than {_MOST_UNNUMBERED} readings of a cell; number them "
                    "in a column repeat"
                )
            np.add.at(count, cell, 1)
        most: int = max(int(block.max()) for _, block in blocks(count))
        del count
        (folder / "count.npy").unlink()
        return most

    def _require_room(self, folder: Path, needed: int) -> None:
        free = shutil.disk_usage(folder).free
        if needed > free:
            raise InvalidInputError(
                f"{self._path} makes arrays of {needed / 2**30:,.1f} GiB, and {folder.parent} has "
                f"{free / 2**30:,.1f} GiB left; check that the columns hold names, or set TMPDIR "
                "to a larger disk"
            )

    def _written(
        self, folder: Path, names: Mapping[str, tuple[str, ...]], shape: tuple[int, ...]
    ) -> tuple[NDArray[Any], NDArray[Any] | None]:
        wide = str(self._types["score"]) in ("double", "int64", "uint64", "int32", "uint32")
        size, n = (8 if wide else 4), math.prod(shape)
        self._require_room(folder, n * (size + 1 + 8 * ("cost" in self._columns)))
        files = {"score": np.float64 if wide else np.float32}
        if "cost" in self._columns:
            files["cost"] = np.float64
        arrays = {
            name: open_memmap(folder / f"{name}.npy", "w+", dtype, shape) for name, dtype in files.items()
        }
        for array in arrays.values():
            for _, block in blocks(array):
                block[:] = np.nan
        flat = {name: array.reshape(-1) for name, array in arrays.items()}
        seen = open_memmap(
            folder / "seen.npy", "w+", np.uint8, (n if "repeat" in self._codes else n // shape[3],)
        )
        label = ranked(list(self._codes.get("repeat", ())))
        for rows in self._batches((*_AXES, "repeat", *files)):
            cell = self._cells(rows, names)
            if "repeat" in rows.codes:
                at = cell * shape[3] + label[rows.codes["repeat"]]
                self._require_new(seen, at, rows, names)
                seen[at] = 1
            else:
                at = cell * shape[3] + seen[cell] + counted(cell)
                np.add.at(seen, cell, 1)
            for name, values in rows.numbers.items():
                self._require_sound(name, values, rows.first)
                flat[name][at] = values
        del seen
        (folder / "seen.npy").unlink()
        for array in arrays.values():
            array.flush()
        found = {name: np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in files}
        return found["score"], found.get("cost")

    def _require_new(
        self, seen: NDArray[np.uint8], at: IntArray, rows: _Rows, names: Mapping[str, tuple[str, ...]]
    ) -> None:
        again = (seen[at] > 0) | (counted(at) > 0)
        if again.any():
            row = int(np.argmax(again))
            cell = ", ".join(repr(names[axis][rows.codes[axis][row]]) for axis in _AXES if axis in rows.codes)
            raise InvalidInputError(
                f"{self._path}, row {rows.first + row} (from 0): the same repeat of {cell} as in an earlier "
                "row; number repeats apart, or leave the column out"
            )

    def _require_sound(self, name: str, values: NDArray[np.float64], first: int) -> None:
        wrong = np.isinf(values) | (values < 0.0 if name == "cost" else False)
        if wrong.any():
            row = int(np.argmax(wrong))
            told = "infinite" if np.isinf(values[row]) else "below 0"
            raise InvalidInputError(
                f"{self._path}, row {first + row} (from 0): {name} {values[row]:g} is {told}; leave it "
                "missing (null or NaN) where there is none"
            )

    def _categories(self, items: tuple[str, ...]) -> tuple[str, ...] | None:
        if "category" not in self._codes:
            return None
        of_items = np.full(len(items), -1, dtype=np.int64)
        for rows in self._batches(("item", "category"), grow=True):
            item, category = rows.codes["item"], rows.codes["category"]
            new = of_items[item] < 0
            of_items[item[new]] = category[new]
            differs = of_items[item] != category
            if differs.any():
                at = int(item[int(np.argmax(differs))])
                raise InvalidInputError(
                    f"{self._path}: item {items[at]!r} is in two categories; give each item one"
                )
        names = tuple(self._codes["category"])
        return tuple(names[code] for code in of_items.tolist())
