"""Parquet as a table of pyarrow; a small file that would fill the memory is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget.recorded._columns import NAMES
from evalbudget.untrusted import check_size

_NUMBER = 8  # bytes
_REMEDY = "leave out columns that are not read, or split it"


def parquet_table(path: Path) -> Any:
    """All columns of a file, of which those that are neither numbers nor texts hold nothing.

    Raises:
        InvalidInputError: it unpacks to more than a limit, by what it declares or by what comes out, or a
            column that is wanted holds lists.
        pyarrow.ArrowException, OSError: it is damaged, or cannot be read.
    """
    import pyarrow as pa
    from pyarrow import compute, dataset, types

    schema = dataset.dataset(path, format="parquet").schema
    plain = [field for field in schema if not types.is_nested(field.type)]
    for field in schema:
        if types.is_nested(field.type) and field.name.strip().lower() in NAMES:
            raise InvalidInputError(
                f"{path}: the column {field.name} is {field.type}; write one number or name per row"
            )
    # texts as words of a dictionary, until it is known how long they are together
    texts = {field.name for field in plain if _is_text(types, field.type)}
    options = dataset.ParquetReadOptions(dictionary_columns=texts)
    found = dataset.dataset(path, format=dataset.ParquetFileFormat(read_options=options))
    for fragment in found.get_fragments():
        sizes = (max(_NUMBER * len(plain) * g.num_rows, g.total_byte_size) for g in fragment.row_groups)
        check_size(path, sum(sizes), _REMEDY)
    table = found.to_table(columns=[field.name for field in plain])
    size = 0
    for at, column in enumerate(table.columns):
        if types.is_dictionary(column.type) and _is_text(types, column.type.value_type):
            for chunk in column.chunks:
                lengths = compute.binary_length(chunk.dictionary).take(chunk.indices)
                size += compute.sum(lengths.cast("int64")).as_py() or 0
            check_size(path, size, _REMEDY)
            table = table.set_column(at, table.field(at).name, column.cast(column.type.value_type))
    for field in schema:
        if types.is_nested(field.type):
            table = table.append_column(field.name, pa.nulls(len(table)))
    return table


def _is_text(types: Any, kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind))
