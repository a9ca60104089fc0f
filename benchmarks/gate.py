"""What the gate of a budget in money or tokens costs per call, beside what a call costs the hosts anyway.

Processor time, so that neither latency nor other work on the machine counts: of whole runs in scores and in
tokens, and within the functions that reserve and settle calls. On inspect models answer at once; on lm-eval a
server on loopback answers, in a process of its own.

    python benchmarks/gate.py --calls 2000 --repetitions 3
"""

from __future__ import annotations

import argparse
import inspect
import json
import logging
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import coroutine
from typing import Any

os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")
os.environ.setdefault("OPENAI_API_KEY", "unused")

from rich.console import Console
from rich.table import Table

TARGET = 0.2
"""Milliseconds."""
ITEMS = 40
COLUMNS = ("in scores", "in tokens", "the gate")
Run = Callable[[bool], tuple[float, int]]
"""Of a run in tokens, or else in scores: processor seconds, and how many calls."""


def inspect_run(calls: int) -> Run:
    """Stories written and rated by simulated models: two calls each."""
    from inspect_ai import eval as host_eval
    from inspect_ai.model import get_model

    from evalbudget_inspect import budgeted
    from evalbudget_inspect.demo.story_rating import story_rating

    tokens = {"used": 110.0 * calls}

    def run(in_tokens: bool) -> tuple[float, int]:
        budget = f"{tokens['used']:.0f}tok" if in_tokens else calls // 2
        with tempfile.TemporaryDirectory() as folder:
            prices = _limits(folder) if in_tokens else None
            task = budgeted(story_rating(ITEMS), budget=budget, sampler="uniform", prices=prices)
            started = time.process_time()
            (log,) = host_eval(
                task,
                model=get_model("simulated/writer"),
                model_roles={"grader": get_model("simulated/judge")},
                display="none",
                log_dir=folder,
                ctl_server=False,
            )
            took = time.process_time() - started
            if log.status != "success":
                raise RuntimeError(f"the run ended with {log.status}: {log.error}")
            done = 2 * len(log.samples or [])
        tokens["used"] = sum(usage.total_tokens for usage in log.stats.model_usage.values()) * calls / done
        return took, done

    return run


def _limits(folder: str) -> str:
    path = Path(folder) / "prices.yaml"
    path.write_text("simulated/*: {input: 1, output: 1, max_output: 60}\n")
    return str(path)


def lm_eval_run(calls: int, url: str, scratch: Path) -> Run:
    """Documents of a generation task, one call each."""
    import lm_eval
    from lm_eval.tasks import TaskManager

    from evalbudget_lm_eval import budgeted
    from lm_eval_overhead import write_task

    name = write_task(scratch, ITEMS)
    manager = TaskManager(include_path=str(scratch), include_defaults=False)
    numbers = iter(range(10**6))
    per_call = {"tokens": 5.0}

    def run(in_tokens: bool) -> tuple[float, int]:
        journal = scratch / f"{next(numbers)}.db"
        budget = f"{per_call['tokens'] * calls:.0f}tok" if in_tokens else calls
        started = time.process_time()
        with budgeted(sampler="uniform", budget=budget, journal=journal):
            found = lm_eval.simple_evaluate(
                model="local-chat-completions",
                model_args=f"model=m,base_url={url}/v1/chat/completions,num_concurrent=8",
                tasks=[name],
                task_manager=manager,
                apply_chat_template=True,
                bootstrap_iters=0,
                gen_kwargs="temperature=1.0,max_gen_toks=20",
            )
        took = time.process_time() - started
        done = int(found["evalbudget"]["readings"])
        if in_tokens:
            per_call["tokens"] = found["evalbudget"]["spent"] / done
        return took, done

    return run


@contextmanager
def served() -> Iterator[str]:
    """A server in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = Path(__file__).with_name("loopback.py")
    process = subprocess.Popen([sys.executable, str(script), "--port", str(port)], stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


@dataclass
class Clock:
    """Processor seconds of this thread within functions of the gate; where two nest, the outer one's."""

    seconds: float = 0.0
    depth: int = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Within this block it runs."""
        started, self.depth = time.thread_time(), self.depth + 1
        try:
            yield
        finally:
            self.depth -= 1
            if not self.depth:
                self.seconds += time.thread_time() - started

    def watch(self, owner: Any, name: str) -> None:
        """Run while this function does, not while it waits."""
        watched = getattr(owner, name)
        if inspect.iscoroutinefunction(watched):

            @wraps(watched)
            async def timed(*given: Any, **named: Any) -> Any:
                return await self._steps(watched(*given, **named))
        else:

            @wraps(watched)
            def timed(*given: Any, **named: Any) -> Any:
                with self.running():
                    return watched(*given, **named)

        setattr(owner, name, timed)

    @coroutine
    def _steps(self, begun: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        sent = None
        while True:
            with self.running():
                try:
                    value = begun.send(sent)
                except StopIteration as done:
                    return done.value
            sent = yield value


def watch_inspect(clock: Clock) -> None:
    """What happens before every call of a model, and after it."""
    from evalbudget_inspect.host import bill
    from evalbudget_inspect.host.current_run import RunHooks

    clock.watch(RunHooks, "on_before_model_generate")
    clock.watch(bill._Call, "answered")


def watch_lm_eval(clock: Clock) -> None:
    """The same."""
    from evalbudget_lm_eval.host import paid_calls

    for name in ("_sizes", "_owners", "_answered"):
        clock.watch(paid_calls._Api, name)
    clock.watch(paid_calls.PaidCalls, "hold")


def measured(run: Run, clock: Clock, repetitions: int) -> dict[str, float]:
    """Milliseconds of processor time per call, and of them within the gate: medians."""
    run(True)  # imports, first-use caches, and how many tokens a call takes
    found: dict[str, list[float]] = {name: [] for name in COLUMNS}
    for _ in range(repetitions):
        took, calls = run(False)
        found["in scores"].append(1e3 * took / calls)
        clock.seconds = 0.0
        took, calls = run(True)
        found["in tokens"].append(1e3 * took / calls)
        found["the gate"].append(1e3 * clock.seconds / calls)
    return {name: statistics.median(values) for name, values in found.items()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the rows here")
    given = parser.parse_args()
    logging.disable(logging.WARNING)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch, served() as url:
        for host, run, watch in (
            ("inspect", inspect_run(given.calls), watch_inspect),
            ("lm-eval", lm_eval_run(given.calls, url, Path(scratch)), watch_lm_eval),
        ):
            watch(clock := Clock())
            rows.append({"host": host, **measured(run, clock, given.repetitions)})
    table = Table(title=f"ms of processor time per call, {given.calls:,} calls")
    for heading in ("host", *COLUMNS[:2], f"of that the gate (< {TARGET})"):
        table.add_column(heading, justify="left" if heading == "host" else "right")
    for row in rows:
        table.add_row(row["host"], *(f"{row[name]:.3f}" for name in COLUMNS))
    Console().print(table)
    if given.json is not None:
        given.json.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
