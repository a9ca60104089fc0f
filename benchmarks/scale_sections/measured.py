"""One measurement in a process of its own, whose memory is that of nothing else.

::

    python -m scale_sections.measured race FOLDER race 2000000
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

from evalbudget.backtest import RecordedScores, backtest_race, history_of
from evalbudget.hooks._plugins import plugins
from evalbudget.races.prediction._files import CACHE_VARIABLE
from evalbudget.recorded import _parquet_folder

_UNIT = 1024**2 if sys.platform == "darwin" else 1024  # of ru_maxrss, to MiB
_SECONDS = 0.02


class _Own:
    """The most memory that was this process's own, without mapped files; MiB, nan if not told."""

    def __init__(self) -> None:
        self.mib = np.nan
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        status, ended = Path("/proc/self/status"), threading.Event()
        while status.is_file():
            for line in status.read_text().splitlines():
                if line.startswith("RssAnon:"):
                    self.mib = float(np.fmax(self.mib, int(line.split()[1]) / 1024))
            ended.wait(_SECONDS)


def _peak() -> float:
    """The most memory with mapped files, MiB."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _UNIT
    # what the system says of a process that was started by a large one may be the large one's
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024


def race(path: str, sampler: str, evaluations: str) -> dict[str, float]:
    """A backtest of one race on a folder of recorded scores."""
    begun = perf_counter()
    recorded = RecordedScores.load(path)
    loaded = perf_counter() - begun
    found = backtest_race(recorded, [sampler], [int(evaluations)], 1, intervals=False, workers=1)
    (row,) = found.rows
    return {
        "loaded": loaded,
        "seconds": perf_counter() - begun,
        "deciding": row.seconds,
        "evaluations": row.evaluations,
        "regret": row.simple_regret,
    }


def parquet(path: str, streamed: str) -> dict[str, float]:
    """Read a folder of Parquet files; those of more rows than ``streamed``, if that is given, by batches."""
    if streamed:
        _parquet_folder.STREAMED = int(streamed)
    begun = perf_counter()
    recorded = plugins().open_scores(Path(path))
    return {"seconds": perf_counter() - begun, "cells": recorded.scores.size}


def factors(path: str, cache: str) -> dict[str, float]:
    """Train item factors on a folder of recorded scores."""
    os.environ[CACHE_VARIABLE] = cache
    begun = perf_counter()
    model = history_of(RecordedScores.load(path))
    return {"seconds": perf_counter() - begun, "rank": model.rank - 2}


if __name__ == "__main__":
    own = _Own()
    measures: dict[str, Callable[..., dict[str, float]]] = {
        "race": race,
        "parquet": parquet,
        "factors": factors,
    }
    told = measures[sys.argv[1]](*sys.argv[2:])
    told |= {"own": own.mib, "peak": _peak()}
    print(json.dumps(told))
