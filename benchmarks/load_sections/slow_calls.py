"""Budgeted runs against plain ones on models that take their time: what waiting between rounds costs.

Latencies are log-normal, of one stream per run, the same for both ways; each pair of runs is one in turn with
the other, in this process.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import random
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")

import lm_eval
from inspect_ai import Epochs, Task
from inspect_ai import eval as host_eval
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, get_model, modelapi
from inspect_ai.scorer import match
from lm_eval.models.openai_completions import LocalChatCompletion
from lm_eval.tasks import TaskManager

from evalbudget_inspect import budgeted as budgeted_task
from evalbudget_lm_eval import budgeted
from lm_eval_overhead import write_task

Pair = tuple[Callable[[], None], Callable[[], None]]


class _Latency:
    """Seconds of one call after another."""

    def __init__(self, draw: Callable[[random.Random], float]) -> None:
        self._draw = draw
        self.restart(0)

    def restart(self, seed: int) -> None:
        """From the first call of a run on."""
        self._rng = random.Random(seed)

    async def wait(self) -> bool:
        """As long as a call takes; whether its answer is right."""
        await asyncio.sleep(self._draw(self._rng))
        return self._rng.random() < 0.5


class _Chat(LocalChatCompletion):  # type: ignore[misc]  # the host ships no types
    """An API model whose calls only take time."""

    def __init__(self, concurrent: int, latency: _Latency) -> None:
        super().__init__(model="slow", base_url="http://localhost/v1", num_concurrent=concurrent)
        self._latency = latency

    async def amodel_call(self, session: Any, sem: asyncio.Semaphore, *_: Any, **__: Any) -> list[str]:
        await sem.acquire()
        try:
            return ["42" if await self._latency.wait() else "7"]
        finally:
            sem.release()


_of_inspect = _Latency(lambda rng: min(rng.lognormvariate(math.log(0.3), 0.6), 2.0))


@modelapi(name="slow")
class _Slow(ModelAPI):
    """The same for the other host."""

    async def generate(self, *_: Any, **__: Any) -> ModelOutput:
        return ModelOutput.from_content("slow", "42" if await _of_inspect.wait() else "7")

    def max_connections(self) -> int:
        return 1_000


def lm_eval_runs(folder: Path, concurrent: int, documents: int, repeats: int) -> Pair:
    """A task with so many repeats, and the same calls as a budget."""
    latency = _Latency(lambda rng: rng.uniform(0.1, 0.4))
    plain, own = write_task(folder, documents), f"echo_{documents}_repeated"
    text = (folder / f"{plain}.yaml").read_text()
    (folder / f"{own}.yaml").write_text(
        text.replace(f'"task": "{plain}"', f'"task": "{own}", "repeats": {repeats}')
    )
    manager = TaskManager(include_path=str(folder), include_defaults=False)

    def run(name: str) -> None:
        latency.restart(1)
        lm_eval.simple_evaluate(
            model=_Chat(concurrent, latency),
            tasks=[name],
            task_manager=manager,
            bootstrap_iters=0,
            apply_chat_template=True,
            gen_kwargs="seed=None",
        )

    def ours() -> None:
        for each in folder.glob("journal*"):
            each.unlink()
        with budgeted(budget=documents * repeats, journal=folder / "journal.jsonl"):
            run(plain)

    return lambda: run(own), ours


def inspect_runs(folder: Path, concurrent: int, samples: int, repeats: int) -> Pair:
    """A task with so many epochs, and the same calls as a budget."""

    def task(epochs: int = 1) -> Task:
        data = [Sample(input=f"question {i}", target="42", id=i) for i in range(samples)]
        return Task(dataset=data, scorer=match(), epochs=Epochs(epochs, "mean"))

    def run(what: Task) -> None:
        _of_inspect.restart(1)
        host_eval(
            what,
            model=get_model("slow/slow", config=GenerateConfig(max_connections=concurrent), memoize=False),
            max_samples=concurrent,
            display="none",
            log_dir=str(folder),
            ctl_server=False,
        )

    return lambda: run(task(repeats)), lambda: run(budgeted_task(task(), budget=samples * repeats))


def paired(runs: Pair, times: int) -> dict[str, float]:
    """Medians of seconds of the plain run, of the budgeted one, and of their ratio."""
    plain, ours = runs
    for each in runs:
        each()  # imports, and data sets that are prepared once
    seconds = []
    for _ in range(times):
        found = []
        for each in (plain, ours):
            begun = perf_counter()
            each()
            found.append(perf_counter() - begun)
        seconds.append(found)
    return {
        "plain": statistics.median(p for p, _ in seconds),
        "ours": statistics.median(o for _, o in seconds),
        "ratio": statistics.median(o / p for p, o in seconds),
    }


def slow_calls(host: str, concurrent: int, items: int, repeats: int, times: int) -> dict[str, float]:
    """See :func:`paired`."""
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as scratch:
        made = lm_eval_runs if host == "lm-eval" else inspect_runs
        return paired(made(Path(scratch), concurrent, items, repeats), times)
