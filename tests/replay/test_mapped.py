"""An object goes to other processes with its large arrays mapped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.replay._mapped import Mapped


def _file_of(array: NDArray[Any]) -> Path | None:
    base: Any = array
    while isinstance(base.base, np.ndarray):
        base = base.base
    return Path(base.filename) if isinstance(base, np.memmap) else None


def test_large_arrays_are_mapped_and_small_ones_are_not(tmp_path: Path) -> None:
    large, small = np.arange(200_000.0), np.arange(10)
    found = Mapped({"large": [large, large], "small": small, "turned": large.reshape(2, -1).T}, tmp_path)()
    assert np.array_equal(found["large"][0], large)
    assert np.array_equal(found["turned"], large.reshape(2, -1).T)
    assert np.array_equal(found["small"], small)
    assert _file_of(found["small"]) is None
    assert found["large"][0] is found["large"][1] or _file_of(found["large"][0]) == _file_of(
        found["large"][1]
    )
    assert not found["large"][0].flags.writeable
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 2 * large.nbytes + 5_000
