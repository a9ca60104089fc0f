"""Hands an object to other processes of this machine: once, in a folder, its large arrays mapped."""

from __future__ import annotations

import pickle
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from cloudpickle import Pickler
from numpy.typing import NDArray

_LARGE = 1_000_000
"""Bytes from which an array has a file of its own."""

_Place = tuple[str, int, str, tuple[int, ...]]
"""Of an array: file, offset in bytes, type and shape."""


class Mapped:
    """An object in a folder, which each process reads once.

    Args:
        value: whatever can be pickled; arrays in it are read-only where it is read.
        folder: an empty one, that stays while the object is in use.
    """

    def __init__(self, value: object, folder: Path) -> None:
        self._path = folder / "stage.pickle"
        with self._path.open("wb") as file:
            _Writer(file, folder).dump(value)

    def __call__(self) -> Any:
        """The object."""
        return _read(self._path)


@lru_cache(maxsize=1)
def _read(path: Path) -> Any:
    with path.open("rb") as file:
        return _Reader(file).load()


class _Writer(Pickler):  # type: ignore[misc]  # it ships no types
    def __init__(self, file: Any, folder: Path) -> None:
        super().__init__(file)
        self._folder = folder
        self._written: dict[int, _Place] = {}
        self._kept: list[object] = []  # or another array may get the number of one that is gone

    def persistent_id(self, value: object) -> _Place | None:
        """Where a large array is; None for all else, which is pickled."""
        if not isinstance(value, np.ndarray) or value.nbytes < _LARGE or value.dtype.hasobject:
            return None
        if id(value) not in self._written:
            self._kept.append(value)
            self._written[id(value)] = _place_of(value) or self._write(value)
        return self._written[id(value)]

    def _write(self, array: NDArray[Any]) -> _Place:
        path = self._folder / f"{len(self._written)}.npy"
        np.save(path, np.ascontiguousarray(array), allow_pickle=False)
        place = _place_of(np.load(path, mmap_mode="r"))
        assert place is not None
        return place


class _Reader(pickle.Unpickler):
    def persistent_load(self, place: Any) -> NDArray[Any]:
        file, offset, dtype, shape = place
        # as a plain array: the class of maps makes every view of them slow
        return np.asarray(np.memmap(file, dtype=dtype, mode="r", offset=offset, shape=shape))


def _place_of(array: NDArray[Any]) -> _Place | None:
    """Where an array is in the file that it is mapped from; None if it is not, or not in one piece."""
    base: Any = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    mapped = isinstance(base, np.memmap) and base.filename is not None and base.mode == "r"
    if not mapped or not array.flags.c_contiguous:
        return None
    offset = base.offset + array.ctypes.data - base.ctypes.data
    return str(base.filename), offset, array.dtype.str, array.shape
