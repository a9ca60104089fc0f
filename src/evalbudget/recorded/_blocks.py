"""Large arrays a few rows at a time, so that what is computed of them needs little memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

_CELLS = 1 << 23


def blocks(array: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """The number of the first row of each block, and the rows; about 8 million entries at a time."""
    rows = max(1, _CELLS * len(array) // max(array.size, 1))
    for first in range(0, len(array), rows):
        yield first, array[first : first + rows]


def first_where(wrong: Any, array: NDArray[Any]) -> tuple[int, ...] | None:
    """Place of the first entry for which ``wrong`` (arrays in, truth out) holds; None if there is none."""
    for first, block in blocks(np.atleast_1d(array)):
        found = wrong(block)
        if found.any():
            row, *rest = (int(at) for at in np.unravel_index(int(np.argmax(found)), found.shape))
            return first + row, *rest
    return None
