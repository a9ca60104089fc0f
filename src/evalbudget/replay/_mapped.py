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
        self._written: dict[int, str] = {}
        self._kept: list[object] = []  # or another array may get the number of one that is gone

    def persistent_id(self, value: object) -> str | None:
        """The file of a large array; None for all else, which is pickled."""
        if not isinstance(value, np.ndarray) or value.nbytes < _LARGE or value.dtype.hasobject:
            return None
        if id(value) not in self._written:
            self._kept.append(value)
            self._written[id(value)] = self._write(value)
        return self._written[id(value)]

    def _write(self, array: NDArray[Any]) -> str:
        path = self._folder / f"{len(self._written)}.npy"
        np.save(path, np.ascontiguousarray(array), allow_pickle=False)
        return str(path)


class _Reader(pickle.Unpickler):
    def persistent_load(self, file: Any) -> NDArray[Any]:
        # as a plain array: the class of maps makes every view of them slow
        return np.asarray(np.load(file, mmap_mode="r"))
