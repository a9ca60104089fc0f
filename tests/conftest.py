from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# read once, when numpy is loaded: on matrices as small as ours threads spend most of their time waiting for
# each other, and more so beside another worker (a fit of 123 judges: 50 times the CPU seconds)
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

# a shell's background jobs ignore it, and so would every process that tests start and interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)

import hypothesis  # noqa: E402, F401  # loaded by its plugin otherwise, and refuses what is frozen below
import numpy as np  # noqa: E402
from tests.postgresql import Server, server, why_not  # noqa: E402

from evalbudget.backtest import RecordedScores  # noqa: E402

DATA_VARIABLE = "EVALBUDGET_DATA"


def pytest_collection_finish() -> None:
    # the hosts' modules and the collected tests stay to the end: a full collection would look at all of them
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """What pytest keeps of an exception in a finalizer holds no frames: whatever test it fell into.

    An event loop that one test left is collected during another, and the traceback kept that one's models
    alive, which it counts.
    """
    keep = sys.unraisablehook

    def without_frames(unraisable: sys.UnraisableHookArgs) -> None:
        keep(unraisable)
        if unraisable.exc_value is not None:
            unraisable.exc_value.__traceback__ = None

    sys.unraisablehook = without_frames


@pytest.fixture
def no_collection() -> Iterator[None]:
    """For tests that read source with ast: Python 3.11 fails if a tree is made while another one is.

    A collection in the middle may report what an earlier test left behind, and a traceback is written with
    ast (https://github.com/python/cpython/issues/106905).
    """
    gc.disable()
    yield
    gc.enable()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real recorded scores; tests that ask for it are skipped where it is absent."""
    default = Path(__file__).resolve().parents[1].parent / "shared" / "data"
    folder = Path(os.environ.get(DATA_VARIABLE, default))
    if not folder.is_dir():
        pytest.skip(f"no recorded scores in {folder}; set {DATA_VARIABLE} to their folder")
    return folder


@pytest.fixture(scope="session")
def recorded_data(data_dir: Path) -> Callable[[str], RecordedScores]:
    """Loads one of the real recordings by its name without suffix."""

    def load(name: str) -> RecordedScores:
        path = data_dir / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"{path} is absent; set {DATA_VARIABLE} to a folder that has it")
        return RecordedScores.load(path)

    return load


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A server of this worker that runs; whoever stops it starts it again."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with server() as running:
        yield running


@pytest.fixture
def small() -> RecordedScores:
    """2 models x 12 items x 2 raters x 6 repeats on 1..5, some missing; (a, item 11, r) has one."""
    rng = np.random.default_rng(5)
    scores = rng.integers(1, 6, size=(2, 12, 2, 6)).astype(np.float32)
    scores[0, 11, 0, 1:] = np.nan
    scores[0, 10, 0] = np.nan
    scores[1, 3, 1, [0, 2]] = np.nan
    items = tuple(f"item {i}" for i in range(12))
    return RecordedScores(scores, ("a", "b"), items, ("r", "s"), categories=tuple("xxxxxxyyyyyy"))
