"""Runs replays in this process, or spread over several."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from types import ModuleType
from typing import Any, Protocol, TypeVar

from evalbudget.errors import EvalbudgetError
from evalbudget.replay.contestant import Contestant

Progress = Callable[[int, int], None]
"""Called with (replays finished, replays in all)."""

_WORTH_A_PROCESS = 200_000
"""Below this many readings a replay is over before a worker process would have started."""


@dataclass(frozen=True, slots=True)
class Job:
    """One replay: which pool and contestant (by position), which seed, to which budgets (increasing)."""

    pool: int
    contestant: int
    seed: int
    budgets: tuple[int, ...]


Found = TypeVar("Found")
Found_co = TypeVar("Found_co", covariant=True)


class Stage(Protocol[Found_co]):
    """What all jobs share; sent to each worker once."""

    @property
    def contestants(self) -> Sequence[Contestant]:
        """Who takes part."""

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
    n = _number_of_workers(stage, jobs, workers)
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
    executor = ProcessPoolExecutor(workers, get_context("spawn"), _enter, (stage,))
    try:
        with _main_hidden():
            futures: list[Future[Any]] = [executor.submit(_work, job) for job in jobs]
        for done, future in enumerate(as_completed(futures), 1):
            future.result()  # fail at once, not after all the others
            if progress is not None:
                progress(done, len(jobs))
        return [future.result() for future in futures]
    except BrokenProcessPool as ex:
        raise EvalbudgetError(
            f"a worker process of the backtest died ({ex}); it may have run out of memory: use fewer "
            "workers, or workers=1 to run in this process"
        ) from ex
    finally:
        executor.shutdown(cancel_futures=True)


def _number_of_workers(stage: Stage[Any], jobs: Sequence[Job], workers: int | None) -> int:
    if not all(_importable(contestant) for contestant in stage.contestants):
        return 1
    if workers is None:
        small = sum(job.budgets[-1] for job in jobs) < _WORTH_A_PROCESS
        workers = 1 if small else os.cpu_count() or 1
    return min(workers, len(jobs))


def _importable(contestant: Contestant) -> bool:
    """Whether another process finds the class: not one of a script, a notebook or a function's body."""
    cls = contestant.sampler
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        return False
    try:
        return importlib.util.find_spec(cls.__module__) is not None
    except (ImportError, ValueError):
        return False


@contextmanager
def _main_hidden() -> Iterator[None]:
    """Keep new processes from importing the user's script again, which would run it (and us) again.

    Scripts need no ``if __name__ == "__main__"`` guard then. Workers need nothing of it: classes defined
    there are replayed in this process.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


_stage: Stage[Any] | None = None


def _enter(stage: Stage[Any]) -> None:
    global _stage  # the initializer of a worker process has nowhere else to leave it
    _stage = stage


def _work(job: Job) -> Any:
    if _stage is None:
        raise EvalbudgetError("a worker of the backtest was not set up; use workers=1")
    return _stage.run(job)
