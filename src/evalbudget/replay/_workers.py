"""Runs replays in this process, or spread over several."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from joblib import Parallel, delayed
from joblib.externals.loky.process_executor import TerminatedWorkerError

from evalbudget.errors import EvalbudgetError

Progress = Callable[[int, int], None]
"""Called with (replays finished, replays in all)."""

_WORTH_A_PROCESS = 200_000
"""Below this many readings a replay is over before a worker process would have started."""


@dataclass(frozen=True, slots=True)
class Job:
    """One replay.

    Attributes:
        pool: by position.
        contestant: by position.
        seed: of the replay.
        budgets: readings, increasing; of a budget in money how many it is expected to buy.
        usd: the budget in money, in dollars; None where readings are counted.
    """

    pool: int
    contestant: int
    seed: int
    budgets: tuple[int, ...]
    usd: float | None = None


Found = TypeVar("Found")
Found_co = TypeVar("Found_co", covariant=True)


class Stage(Protocol[Found_co]):
    """What all jobs share."""

    def run(self, job: Job) -> Found_co:
        """Do one job."""


def run_all(
    stage: Stage[Found], jobs: Sequence[Job], *, workers: int | None, progress: Progress | None
) -> list[Found]:
    """Do all jobs; the answer does not depend on the number of workers.

    Args:
        stage: what the jobs share.
        jobs: what to do.
        workers: processes; 1 for this one. None for one per processor, or this one if the work is small.
        progress: called after each job.

    Raises:
        EvalbudgetError: a worker died.
    """
    n = _number_of_workers(jobs, workers)
    if n > 1:
        return _in_processes(stage, jobs, n, progress)
    results = []
    for done, job in enumerate(jobs, 1):
        results.append(stage.run(job))
        if progress is not None:
            progress(done, len(jobs))
    return results


def _in_processes(
    stage: Stage[Found], jobs: Sequence[Job], workers: int, progress: Progress | None
) -> list[Found]:
    results: dict[int, Found] = {}
    replays = Parallel(workers, return_as="generator_unordered")(
        delayed(_numbered)(stage, index, job) for index, job in enumerate(jobs)
    )
    try:
        for index, found in replays:
            results[index] = found
            if progress is not None:
                progress(len(results), len(jobs))
    except TerminatedWorkerError as ex:
        raise EvalbudgetError(
            f"a worker process of the backtest died ({ex}); it may have run out of memory: use fewer "
            "workers, or workers=1 to run in this process"
        ) from ex
    return [results[index] for index in range(len(jobs))]


def _numbered(stage: Stage[Found], index: int, job: Job) -> tuple[int, Found]:
    return index, stage.run(job)


def _number_of_workers(jobs: Sequence[Job], workers: int | None) -> int:
    if workers is None:
        small = sum(job.budgets[-1] for job in jobs) < _WORTH_A_PROCESS
        workers = 1 if small else os.cpu_count() or 1
    return min(workers, len(jobs))
