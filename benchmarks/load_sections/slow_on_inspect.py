"""Runs on inspect, on a model that takes its time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from inspect_ai import Epochs, Task
from inspect_ai import eval as host_eval
from inspect_ai.dataset import Sample
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, get_model, modelapi
from inspect_ai.scorer import match

from evalbudget_inspect import budgeted
from load_sections.slow_calls import Latency, Pair

_latency = Latency(lambda rng: min(rng.lognormvariate(math.log(0.3), 0.6), 2.0))


@modelapi(name="slow")
class _Slow(ModelAPI):
    """A model whose calls only take time."""

    async def generate(self, *_: Any, **__: Any) -> ModelOutput:
        return ModelOutput.from_content("slow", "42" if await _latency.wait() else "7")

    def max_connections(self) -> int:
        return 1_000


def runs(folder: Path, concurrent: int, items: int, repeats: int) -> Pair:
    """A task with so many epochs, and the same calls as a budget."""

    def task(epochs: int = 1) -> Task:
        data = [Sample(input=f"question {i}", target="42", id=i) for i in range(items)]
        return Task(dataset=data, scorer=match(), epochs=Epochs(epochs, "mean"))

    def run(what: Task) -> None:
        _latency.restart(1)
        host_eval(
            what,
            model=get_model("slow/slow", config=GenerateConfig(max_connections=concurrent), memoize=False),
            max_samples=concurrent,
            display="none",
            log_dir=str(folder),
            ctl_server=False,
        )

    return lambda: run(task(repeats)), lambda: run(budgeted(task(), budget=items * repeats))
