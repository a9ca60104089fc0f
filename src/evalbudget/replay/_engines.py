"""Where replays run: processes of this machine (loky), or a cluster of Dask or Ray; each through joblib."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from socket import create_connection
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

from joblib import parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError

from evalbudget.errors import Choice, EvalbudgetError, InvalidInputError
from evalbudget.replay._mapped import Mapped

_PATIENCE = 10.0
"""Seconds in which a cluster must answer."""


class Engine(Choice):
    """What spreads replays over processes."""

    LOKY = "loky"
    DASK = "dask"
    RAY = "ray"


_VARIABLES = {Engine.DASK: "DASK_SCHEDULER_ADDRESS", Engine.RAY: "RAY_ADDRESS"}


@dataclass(frozen=True, slots=True)
class Crew:
    """Who does the replays.

    Attributes:
        workers: processes on this machine; None to choose. Must be None with a cluster that runs already.
        engine: what starts them or knows the cluster.
        cluster: address of a cluster that runs already; None for the one that this process is connected to,
            or one of its own on this machine.
    """

    workers: int | None = None
    engine: Engine = Engine.LOKY
    cluster: str | None = None

    @classmethod
    def of(cls, workers: int | None, parallel: str, cluster: str | None) -> Crew:
        """As asked for; ``DASK_SCHEDULER_ADDRESS`` and ``RAY_ADDRESS`` name a cluster if nothing else does.

        Raises:
            UnknownNameError: no such engine; suggests the nearest.
            InvalidInputError: no workers, or a cluster where there can be none.
        """
        engine = Engine.named(parallel)
        if workers is not None and workers < 1:
            raise InvalidInputError(f"workers is {workers}; it must be 1 or more, or None to choose")
        if engine is Engine.LOKY and cluster is not None:
            raise InvalidInputError(
                f"a cluster ({cluster}) is for dask and ray, and loky runs on this machine: add --parallel "
                "dask or --parallel ray (parallel= in Python)"
            )
        cluster = cluster or os.environ.get(_VARIABLES.get(engine, ""))
        if workers is not None and cluster is not None:
            raise InvalidInputError(
                f"workers is {workers} and cluster {cluster}: a cluster that runs already has its workers, "
                "and all of them are used; leave --workers out (workers= in Python)"
            )
        return cls(workers, engine, cluster)


@contextmanager
def spread(stage: object, crew: Crew, workers: int) -> Iterator[Callable[[], Any]]:
    """Within, joblib's ``Parallel`` runs where the crew says.

    Args:
        stage: what all jobs share; it is sent once to each worker, or mapped there.
        crew: who runs them.
        workers: processes, where they are started here.

    Yields:
        What gives the stage in a worker.

    Raises:
        InvalidInputError: the engine is not installed, or the cluster cannot be reached.
        EvalbudgetError: a worker died.
    """
    with _SPREAD[crew.engine](stage, crew.cluster, workers) as share:
        yield share


@contextmanager
def _loky(stage: object, _: str | None, workers: int) -> Iterator[Callable[[], Any]]:
    try:
        with TemporaryDirectory(prefix="evalbudget-", ignore_cleanup_errors=True) as folder:
            try:
                share = Mapped(stage, Path(folder))
            except OSError as ex:
                raise EvalbudgetError(
                    f"the scores cannot be written to {folder} for the workers to map ({ex.strerror or ex}); "
                    "set TMPDIR to a folder with room, or use workers=1"
                ) from ex
            with parallel_config(backend="loky", n_jobs=workers):
                yield share
    except TerminatedWorkerError as ex:
        raise _died(ex) from ex


@contextmanager
def _dask(stage: object, address: str | None, workers: int) -> Iterator[Callable[[], Any]]:
    distributed = _installed("distributed", "dask")
    share = _Whole(stage)
    with ExitStack() as opened:
        try:
            if address is not None:
                client = opened.enter_context(distributed.Client(address, set_as_default=False))
            else:
                client = _connected(distributed)
            if client is None:
                local = distributed.LocalCluster(
                    n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
                )
                client = opened.enter_context(
                    distributed.Client(opened.enter_context(local), set_as_default=False)
                )
            opened.enter_context(parallel_config(backend="dask", n_jobs=-1, client=client, scatter=[share]))
        except (OSError, ValueError) as ex:
            raise _unreachable("Dask", address, ex) from ex
        try:
            yield share
        except (distributed.KilledWorker, CancelledError) as ex:
            raise _died(ex) from ex


@contextmanager
def _ray(stage: object, address: str | None, workers: int) -> Iterator[Callable[[], Any]]:
    ray = _installed("ray", "ray")
    _installed("ray.util.joblib", "ray").register_ray()
    with ExitStack() as opened:
        if not ray.is_initialized():
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nobody asked for reports to its makers
            own: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False}
            where = {"address": address} if address is not None else own
            try:
                _require_answer(address)
                ray.init(**where, log_to_driver=False, logging_level="ERROR")
            except (OSError, ValueError, RuntimeError) as ex:
                raise _unreachable("Ray", address, ex) from ex
            opened.callback(ray.shutdown)
        try:
            share = _Put(ray.put(stage))
            # files that joblib maps by itself would be missing on other machines
            with parallel_config(backend="ray", n_jobs=-1, max_nbytes=None):
                yield share
        except (ray.exceptions.RayError, TerminatedWorkerError) as ex:
            raise _died(ex) from ex


_SPREAD = {Engine.LOKY: _loky, Engine.DASK: _dask, Engine.RAY: _ray}


@dataclass(frozen=True, slots=True, weakref_slot=True)
class _Whole:
    """A stage that Dask brought to the worker."""

    stage: object

    def __call__(self) -> Any:
        return self.stage


@dataclass(frozen=True, slots=True)
class _Put:
    """A stage in Ray's store, whose arrays workers of a machine share."""

    reference: Any

    def __call__(self) -> Any:
        return _got(self.reference)


@lru_cache(maxsize=1)
def _got(reference: Any) -> Any:
    return import_module("ray").get(reference)


def _installed(module: str, extra: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as ex:
        raise InvalidInputError(
            f"--parallel {extra} needs {module.partition('.')[0]}, which is not installed: "
            f"pip install 'evalbudget[{extra}]'"
        ) from ex


def _connected(distributed: ModuleType) -> Any:
    """The client that this process uses already; None without one."""
    try:
        return distributed.Client.current()
    except ValueError:
        return None


def _require_answer(address: str | None) -> None:
    """Raise OSError if nobody listens there; Ray itself would go on trying for many minutes."""
    host, _, port = (address or "").rpartition("://")[2].rpartition(":")
    if host and port.isdecimal():
        create_connection((host, int(port)), timeout=_PATIENCE).close()


def _unreachable(name: str, address: str | None, ex: Exception) -> InvalidInputError:
    told = (str(ex) or type(ex).__name__).splitlines()[0]
    where = "of this machine" if address is None else f"at {address}"
    return InvalidInputError(
        f"the {name} cluster {where} cannot be used ({told}); check that it runs and that its "
        "address is right, or leave --parallel out"
    )


def _died(ex: BaseException) -> EvalbudgetError:
    told = (str(ex) or type(ex).__name__).splitlines()[0]
    return EvalbudgetError(
        f"a worker process of the backtest died ({told}); it may have run out of memory: use fewer "
        "workers, or workers=1 to run in this process"
    )
