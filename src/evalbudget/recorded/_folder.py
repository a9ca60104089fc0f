"""A folder of arrays, which are mapped and not read: recorded scores that are larger than the memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.errors import InvalidInputError
from evalbudget.untrusted import parsed_json

CONTENTS = "recorded-scores.json"
"""Written last: a folder without it is not whole."""

_VERSION = 1
_MAPPED = 1_000_000
"""Bytes from which an array is mapped."""


def is_folder(path: Path) -> bool:
    """Whether it is such a folder, or would have become one."""
    return path.is_dir() and ((path / CONTENTS).is_file() or (path / "scores.npy").is_file())


def read(path: Path) -> dict[str, NDArray[Any]]:
    """All arrays; large ones are mapped, read-only.

    Raises:
        InvalidInputError: the folder is not whole, or a file in it is damaged or of another shape.
    """
    if not (path / CONTENTS).is_file():
        raise InvalidInputError(
            f"{path} cannot be read: it has no {CONTENTS}, so it is no folder of recorded scores, or writing "
            "it was interrupted; write it again (evalbudget convert)"
        )
    try:
        contents = parsed_json((path / CONTENTS).read_text(encoding="utf-8"))
        version, arrays = contents["version"], dict(contents["arrays"])
    except (OSError, ValueError, KeyError, TypeError) as ex:
        raise _damaged(path / CONTENTS, ex) from ex
    if version != _VERSION:
        raise InvalidInputError(
            f"{path} is of version {version} of the format, and this evalbudget reads version {_VERSION}; "
            "upgrade evalbudget, or write the folder again"
        )
    return {str(name): _array(path / f"{name}.npy", told) for name, told in arrays.items()}


def write(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays to a folder, which is made, or was such a folder before.

    Raises:
        InvalidInputError: something else is there, or it cannot be written.
    """
    with written(path) as made:
        for name, array in arrays.items():
            np.save(made / f"{name}.npy", array, allow_pickle=False)


@contextmanager
def written(path: Path) -> Iterator[Path]:
    """Within, arrays are saved to the folder as ``NAME.npy``; after it, the folder is whole.

    Raises:
        InvalidInputError: something else is there, or it cannot be written.
    """
    if path.exists() and not (path.is_dir() and (is_folder(path) or not any(path.iterdir()))):
        raise InvalidInputError(f"{path} exists and is no folder of recorded scores; name another folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
        (path / CONTENTS).unlink(missing_ok=True)
        for old in path.glob("*.npy"):
            old.unlink()
        yield path
        told = {}
        for file in sorted(path.glob("*.npy")):
            array = np.load(file, mmap_mode="r", allow_pickle=False)
            told[file.stem] = {"shape": list(array.shape), "dtype": array.dtype.str}
        (path / CONTENTS).write_text(json.dumps({"version": _VERSION, "arrays": told}), encoding="utf-8")
    except OSError as ex:
        raise InvalidInputError(f"{path} cannot be written: {ex.strerror or ex}") from ex


def _array(file: Path, told: Mapping[str, Any]) -> NDArray[Any]:
    try:
        mapped = file.stat().st_size >= _MAPPED
        array = np.load(file, mmap_mode="r" if mapped else None, allow_pickle=False)
        whole = list(array.shape) == told["shape"] and array.dtype.str == told["dtype"]
    except Exception as ex:  # whatever the reader of headers raises
        raise _damaged(file, ex) from ex
    if not whole:
        raise _damaged(
            file, f"it holds {array.dtype.str} of shape {array.shape}, and {CONTENTS} says {dict(told)}"
        )
    return np.asarray(array)  # as a plain array: the class of maps makes every view of them slow


def _damaged(file: Path, told: object) -> InvalidInputError:
    said = (f"{told}" or type(told).__name__).splitlines()[0]
    return InvalidInputError(f"{file} is damaged, truncated or missing ({said}); write the folder again")
