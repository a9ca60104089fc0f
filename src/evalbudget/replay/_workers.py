"""Runs replays in this process, or spread over several by joblib."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeVar

from joblib import Parallel, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError
from joblib.parallel import get_active_backend

from evalbudget.errors import EvalbudgetError, InvalidInputError
from evalbudget.replay._mapped import Mapped

Progress = Callable[[int, int], None]
"""Called with (replays finished, replays in all)."""

_WORTH_A_PROCESS = 200_000
"""Below this many readings a replay is over before a worker process would have started."""
_OWN = "LokyBackend"
"""joblib's backend where nobody chose another."""


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
    workers: int | None = None,
    progress: Progress | None = None,
    readings: int | None = None,
) -> list[Found]:
    """Do all jobs; the answer does not depend on who does them.

    Within ``joblib.parallel_config(backend=...)`` of the caller, such as that of a cluster, its workers do
    them.

    Args:
        stage: what the jobs share.
        jobs: what to do.
        workers: processes of this machine; one is this process. None for one per processor, or this process
            if the work is small.
        progress: called after each job; with a backend of the caller, when all are done.
        readings: of all jobs, about; None for their budgets.

    Raises:
        InvalidInputError: fewer workers than one.
        EvalbudgetError: a worker died.
    """
    if workers is not None and workers < 1:
        raise InvalidInputError(f"workers is {workers}; it must be 1 or more, or None to choose")
    backend, _ = get_active_backend()
    if type(backend).__name__ != _OWN:
        found = [each for _, each in Parallel()(_numbered_jobs(lambda: stage, jobs))]
        if progress is not None:
            progress(len(jobs), len(jobs))
        return found
    n = _number_of_workers(jobs, workers, readings)
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
    with _mapped(stage) as share, parallel_config(backend="loky", n_jobs=workers):
        for index, found in Parallel(return_as="generator_unordered")(_numbered_jobs(share, jobs)):
            results[index] = found
            if progress is not None:
                progress(len(results), len(jobs))
    return [results[index] for index in range(len(jobs))]


@contextmanager
def _mapped(stage: object) -> Iterator[Mapped]:
    """What gives the stage in a process of this machine, which maps its arrays."""
    try:
        with TemporaryDirectory(prefix="evalbudget-", ignore_cleanup_errors=True) as folder:
            try:
                share = Mapped(stage, Path(folder))
            except OSError as ex:
                raise EvalbudgetError(
                    f"the scores cannot be written to {folder} for the workers to map ({ex.strerror or ex}); "
                    "set TMPDIR to a folder with room, or use workers=1"
                ) from ex
            yield share
    except TerminatedWorkerError as ex:
        told = (str(ex) or type(ex).__name__).splitlines()[0]
        raise EvalbudgetError(
            f"a worker process of the backtest died ({told}); it may have run out of memory: use fewer "
            "workers, or workers=1 to run in this process"
        ) from ex


def _numbered_jobs(share: Callable[[], Any], jobs: Sequence[Job]) -> Iterator[Any]:
    return (delayed(_numbered)(share, index, job) for index, job in enumerate(jobs))


def _numbered(share: Callable[[], Any], index: int, job: Job) -> tuple[int, Any]:
    return index, share().run(job)


def _number_of_workers(jobs: Sequence[Job], workers: int | None, readings: int | None) -> int:
    if workers is None:
        if readings is None:
            readings = sum(job.budgets[-1] for job in jobs)
        workers = 1 if readings < _WORTH_A_PROCESS else os.cpu_count() or 1
    return min(workers, len(jobs))
