"""Reads and writes ``.npz`` archives; whatever is wrong with one is told with its path."""

from __future__ import annotations

import math
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import read_array_header_1_0, read_array_header_2_0, read_magic
from numpy.typing import NDArray

from evalbudget.errors import InvalidInputError, reason
from evalbudget.untrusted import check_size

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


def read(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays of an archive.

    Raises:
        InvalidInputError: the file cannot be read, is not an archive of arrays, is truncated, declares more
            than it holds or than fits, or holds pickled objects.
    """
    try:
        with path.open("rb") as file:
            if file.read(4) not in _ZIP:
                raise InvalidInputError(f"{path} is not an .npz archive; write it again with numpy.savez")
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                _check_sizes(path, archive.zip)
                return {name: _array(path, archive, name) for name in archive.files}
    except InvalidInputError:
        raise
    except OSError as ex:
        raise InvalidInputError(f"{path} cannot be read: {reason(ex)}") from ex
    except Exception as ex:  # whatever the readers of zip files, of headers and of compressed data raise
        told = str(ex) or type(ex).__name__
        raise InvalidInputError(
            f"{path} is damaged or truncated ({told}); write or download it again"
        ) from ex


def is_archive(path: Path) -> bool:
    """Whether the file, whatever its name, is an intact archive with an array ``scores``."""
    try:
        with zipfile.ZipFile(path) as archive:
            return "scores.npy" in archive.namelist()
    except Exception:  # whatever the reader of zip files raises on what is none
        return False


def write(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write an archive at exactly this path (numpy alone would append a suffix)."""
    try:
        with path.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **dict(arrays))
    except OSError as ex:
        raise InvalidInputError(f"{path} cannot be written: {reason(ex)}") from ex


def _check_sizes(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse, before anything is unpacked, what would fill the memory."""
    total = sum(entry.file_size for entry in archive.infolist())  # more than these never come out
    check_size(path, total, "save scores as float32, or in several files")
    for entry in archive.infolist():
        if not entry.filename.endswith(".npy"):
            continue
        name = entry.filename.removesuffix(".npy")
        with archive.open(entry) as file:
            first = read_magic(file) == (1, 0)  # later ones differ in the length of the header alone
            shape, _, dtype = (read_array_header_1_0 if first else read_array_header_2_0)(file)
        if dtype.hasobject:
            raise InvalidInputError(
                f"{path}: {name} is an array of Python objects, which are never unpickled; save numbers as "
                "float32 and names as strings"
            )
        if math.prod(shape) * max(dtype.itemsize, 1) > entry.file_size:
            raise InvalidInputError(
                f"{path}: {name} declares {math.prod(shape):,} entries, more than it holds; the file is "
                "damaged, or made to fill the memory; get it again from where it was written"
            )


def _array(path: Path, archive: Any, name: str) -> NDArray[Any]:
    array = archive[name]
    if not isinstance(array, np.ndarray):
        raise InvalidInputError(f"{path}: {name} is not an array; write the file with numpy.savez")
    _check_text(array)
    return array


def _check_text(array: NDArray[Any]) -> None:
    """Refuse texts that Python cannot hold; numpy reads them, and fails wherever one is used.

    Raises:
        ValueError: a character is none.
    """
    if array.dtype.kind == "U" and array.size and array.dtype.itemsize:
        characters = np.ascontiguousarray(array).view(np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
        if characters.max() > sys.maxunicode:
            raise ValueError("a name in it has a character that is none")
