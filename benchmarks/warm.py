"""Processes that start warm: each is forked from one that has imported a host, which takes seconds of CPU.

For tests and campaigns that need a process of their own, to send it a signal say. Nothing but what was
imported is shared: such a process has its own arguments, environment, folder and files, and ends as the
interpreter ends. For each host and way in at least one test starts a fresh
interpreter instead.
"""

from __future__ import annotations

import copy
import gc
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from functools import cache, partial
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path
from secrets import token_hex
from types import ModuleType
from typing import Any

from filelock import FileLock

FOLDER = Path(__file__).parent
IMPORTED = {  # what a command would import bit by bit
    "inspect": (
        *("inspect_ai._cli.main", "inspect_ai.agent._acp.server", "inspect_ai.model._openai_responses"),
        *("openai", "fastapi", "uvicorn.lifespan.on", "uvicorn.protocols.http.auto", "charset_normalizer"),
        *("uvicorn.protocols.websockets.auto", "anyio._backends._asyncio", "rich.markdown", "pydantic.v1"),
        *("evalbudget_inspect._registry", "evalbudget_inspect.plugin", "evalbudget_inspect.cli"),
        *("inspect_ai.model._providers.mockllm", "tiktoken.load", "tiktoken_ext.openai_public", "requests"),
        *("evalbudget.cli.main", "evalbudget.report", "scipy.special", "joblib"),
        *("evalbudget.builtin", "evalbudget.doctor.checks", "evalbudget_pairwise.samplers"),
        *("evalbudget_pairwise.plugin", "evalbudget_pairwise.inspect.command"),
        *("evalbudget.comparisons._verdicts", "evalbudget.scorer"),
        *("evalbudget_inspect.repeats.registry_entry", "evalbudget_inspect.repeats.dry_run"),
        *("evalbudget_inspect.races.registry_entry", "evalbudget_inspect.races.command"),
        *("evalbudget_inspect.races.dry_run", "evalbudget_inspect.races.gate", "evalbudget.comparisons"),
        *("evalbudget_inspect.judges.panel_metrics", "evalbudget_inspect.repeats.metrics", "filelock"),
        *("evalbudget_inspect.races.metrics", "evalbudget_inspect.providers.simulated"),
    ),
    "inspect alone": ("inspect_ai._cli.main", "inspect_ai._eval.eval"),
    "none": (),
    "core": (
        *("evalbudget.book", "evalbudget.repeats.samplers", "evalbudget.testing"),
        *("sqlalchemy.dialects.sqlite.pysqlite", "sqlalchemy.dialects.postgresql.psycopg"),
        "anyio._backends._asyncio",
    ),
    "lm-eval": (
        *("lm_eval._cli.harness", "lm_eval.evaluator", "lm_eval.models.openai_completions", "transformers"),
        *("lm_eval.models.dummy", "pytablewriter", "rich", "scipy.io", "scipy.special", "joblib"),
        *("evalbudget.cli.main", "evalbudget.builtin", "evalbudget.report", "evalbudget.backtest"),
        *("evalbudget.book", "sqlalchemy.dialects.sqlite.pysqlite"),
        *("evalbudget.doctor.checks", "evalbudget_pairwise.samplers", "evalbudget_lm_eval.plugin"),
        *("evalbudget.comparisons._verdicts", "evalbudget.scorer"),
        *("evalbudget_lm_eval.cli", "evalbudget_lm_eval.repeats.host_cli", "evalbudget_lm_eval.repeats.run"),
        *("evalbudget_lm_eval.repeats.forecast", "evalbudget_lm_eval.races.command"),
        *("evalbudget_lm_eval.races.api", "evalbudget_pairwise.lm_eval.command"),
    ),
}
_LARGEST = 1 << 20  # bytes of a request
_LONGEST = 120.0  # seconds to import a host, under load


class Popen(subprocess.Popen[Any]):
    """As subprocess.Popen, for a command of this interpreter: ``-c CODE``, ``-m MODULE`` or a script."""

    _ended: int | None = None  # a pipe in which stands how it ended

    def __init__(self, command: list[str], *, host: str, **options: Any) -> None:
        self._host = host
        super().__init__(command, **options)

    def _execute_child(self, *given: Any) -> None:
        if sys.platform != "linux":
            return super()._execute_child(*given)  # type: ignore[misc, no-any-return]
        args, cwd, env, pipes, new_session = given[0], given[5], given[6], given[10:16], given[21]
        where = str(Path(cwd or ".").absolute())
        request = json.dumps([args[1:], where, dict(os.environ if env is None else env), new_session])
        files = [given if given != -1 else own for own, given in enumerate((pipes[0], pipes[3], pipes[5]))]
        self._ended, end = os.pipe()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
            channel.settimeout(_LONGEST)
            channel.connect(_starter(self._host))
            socket.send_fds(channel, [request.encode()], [*files, end])
            os.close(end)
            self.pid = int(channel.recv(_LARGEST))
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]
        return None

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if self._ended is None:
            return super()._try_wait(flags)  # type: ignore[misc, no-any-return]
        if flags and not select.select([self._ended], [], [], 0)[0]:
            return 0, 0
        status = int(os.read(self._ended, _LARGEST))
        os.close(self._ended)
        return self.pid, status

    def _internal_poll(self, *given: Any, **named: Any) -> int | None:
        if self._ended is None:
            return super()._internal_poll(*given, **named)  # type: ignore[misc, no-any-return]
        with suppress(subprocess.TimeoutExpired):
            self._wait(timeout=0)  # type: ignore[attr-defined]
        return self.returncode


def run(command: list[str], *, timeout: float = 300.0, **options: Any) -> subprocess.CompletedProcess[str]:
    """As subprocess.run, which is told what was said."""
    told = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    with Popen(command, **told) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


_packages_distributions = cache(packages_distributions)


@cache
def _starter(host: str) -> str:
    """Where one listens that has imported the host; all workers of a run of tests have the same."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    folder = Path(tempfile.gettempdir()) / f"warm-{run or os.getpid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    where = folder / host
    with FileLock(f"{where}.lock"):
        if not where.exists():
            of = os.getppid() if run else os.getpid()
            code = f"from warm import begin; exec(begin({str(where)!r}, {host!r}, {of}))"
            path = os.pathsep.join([str(FOLDER), *filter(None, [os.environ.get("PYTHONPATH")])])
            started = subprocess.Popen(
                [sys.executable, "-c", code],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
            until = time.monotonic() + _LONGEST
            while not where.exists():
                if started.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"nothing starts warm for {host}")
                time.sleep(0.01)
            started.returncode = 0  # it ends by itself
    return str(where)


def done_for_nobody() -> Iterator[tuple[ModuleType, str, Any]]:
    """What inspect does in vain where nobody looks on: module, name in it, and what stands there instead.

    For every task of an installed package it lists the files of all installed packages (half a second), it
    turns every event of a sample into a message for clients, looks whether one of its values is nested a
    hundredfold and which ones name an attachment, compares the state and the store before and after each
    step, marks where each begins, starts twelve threads to compress it, writes each number of 128
    bits digit by digit, copies what cannot change, value by value, and lays out results that --display none
    does not show.
    """
    for path, name, instead in (
        ("inspect_ai._util.package", "packages_distributions", _packages_distributions),
        ("inspect_ai.agent._acp.event_mapping", "_AcpEventRouter", _NoRouter),
        ("inspect_ai.log._condense", "exceeds_max_depth", lambda value, max_depth: False),
        ("inspect_ai.log._condense", "attachment_refs_from_value", _attachments_in),
        ("inspect_ai.solver._transcript", "state_jsonable", lambda state: {}),
        ("inspect_ai.log._transcript", "track_store_changes", nullcontext),
        *((f"inspect_ai.{name}", "span", _marked) for name in ("_eval.task.run", "_eval.score")),
        *((f"inspect_ai.{name}", "span", _marked) for name in ("_sentinel._dispatch", "solver._transcript")),
        ("inspect_ai.event._base", "uuid", partial(token_hex, 11)),
        ("shortuuid.main", "int_to_string", lambda number, alphabet, padding=None: f"{number:032x}"[:22]),
        ("inspect_ai._util.zipfile", "_ZSTD_THREADS", 0),
        ("inspect_ai._display.rich.display", "tasks_results", _results_that_are_shown),
        ("copy", "_deepcopy_dispatch", {**getattr(copy, "_deepcopy_dispatch", {}), dict: _copied}),
    ):
        with suppress(ImportError):  # another version has it elsewhere, or not at all
            module = import_module(path)
            if hasattr(module, name):
                yield module, name, instead


def _marked(name: str, **more: Any) -> Any:
    """A step of a sample: where scorers begin is read from logs, of the others nobody asks."""
    return sys.modules["inspect_ai.util"].span(name, **more) if name == "scorers" else nullcontext()


def _copied(x: dict[Any, Any], memo: dict[int, Any]) -> dict[Any, Any]:
    """As copy.deepcopy of a dict, without a call for each value that is its own copy."""
    y: dict[Any, Any] = {}
    memo[id(x)] = y
    for key, value in x.items():
        own = value if type(value) in _UNCHANGING else copy.deepcopy(value, memo)
        y[key if type(key) in _UNCHANGING else copy.deepcopy(key, memo)] = own
    return y


def _attachments_in(value: Any) -> set[str]:
    """As the host finds them, which looks at every value in turn."""
    if "attachment://" not in repr(value):
        return set()
    found: set[str] = sys.modules["inspect_ai.log._condense"].attachment_refs_from_object(value)
    return found


def _results_that_are_shown(tasks: Any) -> Any:
    from inspect_ai._display.core.results import tasks_results
    from inspect_ai.util import display_type

    return "" if display_type() == "none" else tasks_results(tasks)


_UNCHANGING = {type(None), bool, int, float, str, bytes}


class _NoRouter:
    def __init__(self, session: Any) -> None:
        pass

    def attach(self) -> None:
        pass

    def detach(self) -> None:
        pass


def begin(where: str, host: str, of: int) -> str:
    """Start what is asked for until the process ``of`` ended; returns in each of those, with what to run."""
    for name in IMPORTED[host]:
        with suppress(ImportError):  # another version has it elsewhere, or not at all
            import_module(name)
    if host == "inspect":
        sys.modules["inspect_ai.model"].get_model_info("openai/gpt-4o")  # the host reads what is known of all
        for module, name, instead in done_for_nobody():
            setattr(module, name, instead)
        _packages_distributions()
    if host == "lm-eval":
        evaluator: Any = sys.modules["lm_eval.evaluator"]  # which asks git of every run
        evaluator.get_git_commit_hash = cache(evaluator.get_git_commit_hash)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)  # the default takes a tenth of a host's time
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(f"{where}.new")
    listener.listen(99)
    listener.settimeout(1.0)
    Path(f"{where}.new").rename(where)
    while True:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        try:
            channel, _ = listener.accept()
        except TimeoutError:
            if not Path(f"/proc/{of}").exists():
                for mine in (where, f"{where}.lock"):
                    Path(mine).unlink(missing_ok=True)
                with suppress(OSError):  # another host's is there
                    Path(where).parent.rmdir()
                os._exit(0)
            continue
        request, files, *_ = socket.recv_fds(channel, _LARGEST, 4)
        if not os.fork():
            listener.close()
            pid = os.fork()
            if not pid:
                channel.close()
                os.close(files.pop())
                return _become(files, *json.loads(request))
            channel.send(str(pid).encode())
            channel.close()
            end = files.pop()
            for file in files:
                os.close(file)
            os.write(end, str(os.waitpid(pid, 0)[1]).encode())
            os._exit(0)
        channel.close()
        for file in files:
            os.close(file)


def _become(files: list[int], command: list[str], folder: str, env: dict[str, str], new_session: bool) -> str:
    for own, file in enumerate(files):
        os.dup2(file, own)
        os.close(file)
    if new_session:
        os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ |= env
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()
    sys.path[1:1] = [
        one for one in env.get("PYTHONPATH", "").split(os.pathsep) if one and one not in sys.path
    ]
    what, *arguments = command
    if what in ("-c", "-m"):
        code, *arguments = arguments
    else:
        sys.path[0] = str(Path(what).parent)
    sys.argv = [what, *arguments]
    if what == "-c":
        return code
    if what == "-m":
        return f"import runpy; runpy.run_module({code!r}, run_name='__main__', alter_sys=True)"
    return f"import runpy; runpy.run_path({what!r}, run_name='__main__')"
