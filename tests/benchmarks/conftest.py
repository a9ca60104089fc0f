"""Benchmarks run at a tiny size, on stand-ins for the real recordings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where benchmarks look for recordings; what they compute once is kept beside it."""
    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("places.RECORDED", folder)
        patch.setenv("EVALBUDGET_CACHE", str(tmp_path_factory.mktemp("cache")))
        # which rank and ridge a history is given shows in no figure here, and takes half of the time
        patch.setattr("evalbudget.races.prediction._selection.RANKS", (1,))
        patch.setattr("evalbudget.races.prediction._selection.RIDGES", (3.0,))
        yield folder
