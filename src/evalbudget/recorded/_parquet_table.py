"""Parquet as a table of pyarrow; a small file that would fill the memory is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget.untrusted import check_size, largest

_NUMBER = 8  # bytes
_REMEDY = "split it"


def parquet_table(path: Path, read: Callable[[Sequence[str]], Collection[int]]) -> Any:
    """All columns of a file, of which those that are not read hold nothing.

    Args:
        path: of the file.
        read: the numbers of the columns that are read, by the names of all.

    Raises:
        InvalidInputError: they unpack to more than a limit, by what is declared or by what comes out, or one
            of them holds lists.
        pyarrow.ArrowException, OSError: it is damaged, or cannot be read.
    """
    import pyarrow as pa
    from pyarrow import compute, dataset, types

    schema = dataset.dataset(path, format="parquet").schema
    fields = [schema.field(at) for at in sorted(read(schema.names))]
    for field in fields:
        if types.is_nested(field.type):
            raise InvalidInputError(
                f"{path}: the column {field.name} is {field.type}; write one number or name per row"
            )
    names = {field.name for field in fields}
    # texts as words of a dictionary, until it is known how long they are together
    texts = {field.name for field in fields if _is_text(types, field.type)}
    options = dataset.ParquetReadOptions(dictionary_columns=texts)
    found = dataset.dataset(path, format=dataset.ParquetFileFormat(read_options=options))
    size = _size(path, names, of_all=True)
    if size > largest():
        size = _size(path, names, of_all=False)
    check_size(path, size, _REMEDY)
    table = found.to_table(columns=list(names))
    size, columns = 0, {}
    for name in names:
        column = table[name]
        if types.is_dictionary(column.type) and _is_text(types, column.type.value_type):
            for chunk in column.chunks:
                lengths = compute.binary_length(chunk.dictionary).take(chunk.indices)
                size += compute.sum(lengths.cast("int64")).as_py() or 0
            check_size(path, size, _REMEDY)
            column = column.cast(column.type.value_type)
        columns[name] = column
    nothing = pa.nulls(len(table))
    table = pa.table([columns.get(name, nothing) for name in schema.names], names=schema.names)
    table.validate(full=True)  # texts are UTF-8
    return table


def _size(path: Path, names: Collection[str], *, of_all: bool) -> int:
    """Bytes that the columns of these names unpack to, by what is declared; or rather all columns."""
    from pyarrow import parquet

    size = 0
    with parquet.ParquetFile(path) as file:
        leaves = [at for at, column in enumerate(file.schema) if column.path in names]
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            declared = group.total_byte_size
            if not of_all:
                # one row: an error where the next line, of what is damaged, would end the process
                next(file.iter_batches(1, [number], list(names), use_threads=False), None)
                declared = sum(group.column(at).total_uncompressed_size for at in leaves)
            size += max(_NUMBER * len(names) * group.num_rows, declared)
    return size


def _is_text(types: Any, kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))
