from __future__ import annotations

import gc
import http.client
import os
import secrets
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

# read once, when numpy is loaded: on matrices as small as ours threads spend most of their time waiting for
# each other, and more so beside another worker (a fit of 123 judges: 50 times the CPU seconds)
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")

gc.disable()  # until all tests are collected: what is imported stays

# a shell's background jobs ignore it, and so would every process that tests start and interrupt
signal.signal(signal.SIGINT, signal.default_int_handler)

import hypothesis  # noqa: E402, F401  # loaded by its plugin otherwise, and refuses what is frozen below
import numpy as np  # noqa: E402
from hypothesis.internal.conjecture import providers  # noqa: E402
from tests.claims import is_full  # noqa: E402
from tests.machine import lacks  # noqa: E402

from evalbudget.backtest import RecordedScores  # noqa: E402
from places import RECORDED, data_file  # noqa: E402
from postgresql_server import Server, server, why_not  # noqa: E402


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Variants run where all claims are tested in full, and where a test is asked for by its name."""
    if is_full() or any("::" in argument for argument in config.args):
        return
    variants = [item for item in items if item.get_closest_marker("variant")]
    if variants:
        config.hook.pytest_deselected(items=variants)
        items[:] = [item for item in items if not item.get_closest_marker("variant")]


def pytest_collection_finish() -> None:
    # the hosts' modules and the collected tests stay to the end: a full collection looks at all of them.
    # What a run of a host makes goes when it ends: a look every 700 objects takes a tenth of the time
    gc.enable()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)


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


@pytest.fixture(autouse=True, scope="session")
def _data_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    # killed runs of inspect leave their buffers in the user's folder for days, and each run looks at them all
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(autouse=True, scope="session")
def _nothing_is_read_in_vain() -> Iterator[None]:
    # headers as those of a mail are, which is a quarter of what a call to a server of ours takes; and the
    # source of every module that is loaded, for numbers that hypothesis may try: others in each process
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http.client, "parse_headers", _headers)
        patch.setattr(providers, "_get_local_constants", lambda: providers._local_constants, raising=False)
        yield


def _headers(lines: BinaryIO, _class: type[http.client.HTTPMessage] = http.client.HTTPMessage) -> Any:
    found = _class()
    for line in http.client._read_headers(lines)[:-1]:  # type: ignore[attr-defined]  # refuses too many
        name, _, value = line.decode("iso-8859-1").partition(":")
        found[name] = value.strip()
    return found


@pytest.fixture(autouse=True)
def _no_keys_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalbudget.secrets._given", set())


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
    """The folder of real recorded scores."""
    return RECORDED


@pytest.fixture(scope="session")
def recorded_data() -> Callable[[str], RecordedScores]:
    """Loads one of the real recordings by its name without suffix."""
    return lambda name: RecordedScores.load(data_file(name))


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


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A PostgreSQL server; tests that ask for it are skipped where there is none."""
    reason = why_not()
    if reason is not None:
        lacks(reason)
    with server() as there:
        yield there


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that does not exist yet, in both kinds of database."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    return f"{request.getfixturevalue('postgresql').url}#s{secrets.token_hex(6)}"
