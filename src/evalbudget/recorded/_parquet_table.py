"""Parquet as a table of pyarrow; a small file that would fill the memory is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalbudget.untrusted import check_size

_NUMBER = 8  # bytes
_REMEDY = "leave out columns that are not read, or split it"


def dataset_of(path: Path) -> Any:
    """A file, or all ``.parquet`` files of a folder, as a dataset whose texts are words of a dictionary.

    Raises:
        ImportError: pyarrow is not installed.
        pyarrow.ArrowException, OSError: it is damaged, or cannot be read.
    """
    from pyarrow import dataset, types

    found = dataset.dataset(path, format="parquet", partitioning="hive" if path.is_dir() else None)
    texts = {
        field.name
        for field in found.schema
        if types.is_string(field.type) or types.is_large_string(field.type)
    }
    options = dataset.ParquetReadOptions(dictionary_columns=texts)
    form = dataset.ParquetFileFormat(read_options=options)
    return dataset.dataset(path, format=form, partitioning="hive" if path.is_dir() else None)


def table_of(found: Any, path: Path) -> Any:
    """All of a dataset.

    Raises:
        InvalidInputError: it unpacks to more than a limit, by what it declares or by what comes out.
    """
    import pyarrow as pa
    from pyarrow import compute

    for fragment in found.get_fragments():
        told = fragment.metadata
        columns = (
            told.row_group(i).column(j) for i in range(told.num_row_groups) for j in range(told.num_columns)
        )
        size = sum(max(_NUMBER * column.num_values, column.total_uncompressed_size) for column in columns)
        check_size(path, size, _REMEDY)
    table = found.to_table()
    size = 0
    for at, column in enumerate(table.columns):
        if not pa.types.is_dictionary(column.type):
            continue
        for chunk in column.chunks:
            lengths = compute.binary_length(chunk.dictionary)
            size += compute.sum(lengths.take(chunk.indices).cast("int64")).as_py() or 0
        check_size(path, size, _REMEDY)
        table = table.set_column(at, table.field(at).name, column.cast(column.type.value_type))
    return table
