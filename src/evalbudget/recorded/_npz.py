"""Reads and writes ``.npz`` archives; whatever is wrong with one is told with its path."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.errors import InvalidInputError

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


def read(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an archive.

    Raises:
        InvalidInputError: the file cannot be read, is not an archive of arrays, is truncated, or holds
            pickled objects.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) not in _ZIP:
                raise InvalidInputError(f"{path} is not an .npz archive; write one with RecordedScores.save")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                return {name: _array(path, archive, name) for name in archive.files}
    except OSError as ex:
        raise InvalidInputError(f"{path} cannot be read: {ex.strerror or ex}") from ex
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError) as ex:
        if isinstance(ex, InvalidInputError):
            raise
        raise InvalidInputError(f"{path} is damaged or truncated ({ex}); write or download it again") from ex


def is_archive(path: Path) -> bool:
    """Whether the file, whatever its name, is an intact archive with an array ``scores``."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "scores.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


def write(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an archive at exactly this path (numpy alone would append a suffix)."""
    try:
        with path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **dict(arrays))
    except OSError as ex:
        raise InvalidInputError(f"{path} cannot be written: {ex.strerror or ex}") from ex


def _array(path: Path, archive: Any, name: str) -> NDArray[Any]:
    try:
        array = archive[name]
    except ValueError as ex:
        if "allow_pickle" not in str(ex):
            raise
        raise InvalidInputError(
            f"{path}: {name} is an array of Python objects, which are never unpickled; save numbers as "
            "float32 and names as strings"
        ) from ex
    if not isinstance(array, np.ndarray):
        raise InvalidInputError(f"{path}: {name} is not an array; write the file with RecordedScores.save")
    return array
