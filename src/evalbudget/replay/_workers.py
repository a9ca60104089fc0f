"""Runs replays in this process, or spread over several."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from joblib import Parallel, delayed

from evalbudget.replay._engines import Crew, Engine, spread

Progress = Callable[[int, int], None]
"""Called with (replays finished, replays in all)."""

_CHOSEN = Crew()
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
    stage: Stage[Found],
    jobs: Sequence[Job],
    *,
    crew: Crew = _CHOSEN,
    progress: Progress | None = None,
    readings: int | None = None,
) -> list[Found]:
    """Do all jobs; the answer does not depend on who does them.

    Args:
        stage: what the jobs share.
        jobs: what to do.
        crew: who does it. On loky, one worker is this process, and no number is one per processor, or this
            process if the work is small.
        progress: called after each job.
        readings: of all jobs, about; None for their budgets.

    Raises:
        InvalidInputError: an engine that is not installed, or a cluster that cannot be reached.
        EvalbudgetError: a worker died.
    """
    n = _number_of_workers(jobs, crew, readings)
    if n > 1 or crew.engine is not Engine.LOKY:
        return _in_processes(stage, jobs, crew, n, progress)
    results = []
    for done, job in enumerate(jobs, 1):
        results.append(stage.run(job))
        if progress is not None:
            progress(done, len(jobs))
    return results


def _in_processes(
    stage: Stage[Found], jobs: Sequence[Job], crew: Crew, workers: int, progress: Progress | None
) -> list[Found]:
    results: dict[int, Found] = {}
    with spread(stage, crew, workers) as share:
        tasks = (delayed(_numbered)(share, index, job) for index, job in enumerate(jobs))
        if crew.engine is Engine.RAY:  # its backend gives results only when all are there
            return [found for _, found in _Told(progress, len(jobs))(tasks)]
        for index, found in Parallel(return_as="generator_unordered")(tasks):
            results[index] = found
            if progress is not None:
                progress(len(results), len(jobs))
    return [results[index] for index in range(len(jobs))]


class _Told(Parallel):  # type: ignore[misc]  # joblib ships no types
    """Tells of each batch that is done, from the thread that receives it."""

    def __init__(self, progress: Progress | None, jobs: int) -> None:
        super().__init__()
        self._told, self._total = progress, jobs

    def print_progress(self) -> None:
        """Called by joblib."""
        if self._told is not None:
            self._told(self.n_completed_tasks, self._total)


def _numbered(share: Callable[[], Any], index: int, job: Job) -> tuple[int, Any]:
    return index, share().run(job)


def _number_of_workers(jobs: Sequence[Job], crew: Crew, readings: int | None) -> int:
    workers = crew.workers
    if workers is None:
        if readings is None:
            readings = sum(job.budgets[-1] for job in jobs)
        small = crew.engine is Engine.LOKY and readings < _WORTH_A_PROCESS
        workers = 1 if small else os.cpu_count() or 1
    return min(workers, len(jobs))
