"""Recognises files of recorded scores, for the ``evalbudget_open_scores`` hook."""

from __future__ import annotations

from pathlib import Path

from evalbudget.errors import InvalidInputError
from evalbudget.recorded import _npz
from evalbudget.recorded._csv_table import read_csv
from evalbudget.recorded._frame_table import read_parquet
from evalbudget.recorded._json_table import read_json, read_jsonl
from evalbudget.recorded._scores import RecordedScores


def open_scores(
    path: str | Path, category: str | None = None, task: str | None = None
) -> RecordedScores | None:
    """Read ``.npz`` in the recorded-scores layout (known by its suffix or its content), or a long table.

    Long tables are ``.csv``, ``.tsv``, ``.json``, ``.jsonl`` and ``.parquet``, one reading per row.

    Args:
        path: of the file.
        category: what says which category an item belongs to: a column; ``.npz`` files have one for all.
        task: of several in a long table, the one to read.

    Returns:
        The scores; None for folders, and files of other formats.

    Raises:
        UnknownNameError: no such task.
        InvalidInputError: the file is of a known format but broken, with file and remedy.
    """
    path = Path(path)
    if not path.is_file():
        return None
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        return read_csv(path, category=category, task=task)
    if suffix in (".jsonl", ".ndjson"):
        return read_jsonl(path, category=category, task=task)
    if suffix == ".json":
        return read_json(path, category=category, task=task)
    if suffix in (".parquet", ".pq"):
        return read_parquet(path, category=category, task=task)
    if suffix == ".npz" or _npz.is_archive(path):
        return _loaded(path, task)
    return None


def _loaded(path: Path, task: str | None) -> RecordedScores:
    if task is not None:
        raise InvalidInputError(
            f"{path} is of a format that knows no tasks, so there is no {task!r}; leave --task out"
        )
    return RecordedScores.load(path)
