"""Parquet as a table of pyarrow; a small file that would fill the memory is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget.recorded._parquet_pages import REMEDY, VALUE, CheckedPages
from evalbudget.untrusted import check_size


def parquet_table(path: Path, read: Callable[[Sequence[str]], Collection[int]]) -> Any:
    """All columns of a file, of which those that are not read hold nothing.

    Args:
        path: of the file.
        read: the numbers of the columns that are read, by the names of all.

    Raises:
        InvalidInputError: they unpack to more than a limit, or one of them holds something else than numbers
            or names.
        pyarrow.ArrowException, OSError, ValueError: it is damaged, or cannot be read.
    """
    import pyarrow as pa
    from pyarrow import compute, dataset, parquet, types

    schema = parquet.read_schema(path)
    fields = [schema.field(at) for at in sorted(read(schema.names))]
    for field in fields:
        if not _is_plain(types, field.type):
            raise InvalidInputError(
                f"{path}: the column {field.name} is {field.type}; write one number or name per row"
            )
    names = [field.name for field in fields]
    # texts as words of a dictionary, until it is known how long they are together
    kind = dataset.ParquetFileFormat(
        read_options=dataset.ParquetReadOptions(dictionary_columns=names),
        default_fragment_scan_options=dataset.ParquetFragmentScanOptions(pre_buffer=False),
    )
    with CheckedPages(path) as pages:
        file = kind.make_fragment(pa.PythonFile(pages, mode="r"))
        file.ensure_complete_metadata()
        check_size(path, VALUE * len(names) * file.metadata.num_rows, REMEDY)  # by what it says, the sooner
        pages.are_read = True
        table = file.to_table(columns=names, use_threads=False)
    size, columns = 0, {}
    for name in names:
        column = table[name]
        if types.is_dictionary(column.type) and _is_text(types, column.type.value_type):
            for chunk in column.chunks:
                lengths = compute.binary_length(chunk.dictionary).take(chunk.indices)
                size += compute.sum(lengths.cast("int64")).as_py() or 0
            check_size(path, size, REMEDY)
            column = column.cast(column.type.value_type)
        columns[name] = column
    nothing = pa.nulls(len(table))
    table = pa.table([columns.get(name, nothing) for name in schema.names], names=schema.names)
    table.validate(full=True)  # texts are UTF-8
    return table


def _is_plain(types: Any, kind: Any) -> bool:
    """Whether each value is text, or has a few bytes."""
    kind = kind.value_type if types.is_dictionary(kind) else kind
    is_number = types.is_primitive(kind) or types.is_decimal(kind) or types.is_null(kind)
    return bool(is_number) or _is_text(types, kind)


def _is_text(types: Any, kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))
