"""A backtest whose time is measured, and its rows without their times."""

from __future__ import annotations

import json
import os
import resource
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from joblib.externals.loky import get_reusable_executor

from evalbudget.backtest import RecordedScores, backtest

SAMPLERS = ("uniform", "auto", "eb-bernstein", "robin-hood", "robin")


def recorded(n_items: int) -> RecordedScores:
    """Scores of one model by one rater, 40 of each item; some items are far noisier than others."""
    rng = np.random.default_rng(0)
    mean, sd = rng.uniform(0.0, 1.0, n_items), rng.uniform(0.05, 0.4, n_items)
    scores = rng.normal(mean[:, None], sd[:, None], (n_items, 40)).astype(np.float32)
    return RecordedScores(scores[None, :, None, :], ("model",), tuple(map(str, range(n_items))), ("rater",))


@dataclass(frozen=True)
class Ran:
    """One backtest.

    Attributes:
        rows: without the seconds of replays.
        seconds: wall clock.
        processor: seconds of it, in this process and those it started on this machine.
        load: processes that wanted a processor in the last minute, others' included.
    """

    rows: list[dict[str, Any]]
    seconds: float
    processor: float
    load: float


def ran(scores: RecordedScores, seeds: int, **where: Any) -> Ran:
    """All samplers, 20 readings an item."""
    before, started = _processor(), perf_counter()
    result = backtest(scores, SAMPLERS, ["20x"], seeds, **where)
    get_reusable_executor().shutdown(wait=True)  # what ended is counted; the next one starts anew
    seconds = perf_counter() - started
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in json.loads(result.to_json())]
    return Ran(rows, seconds, _processor() - before, os.getloadavg()[0])


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
