"""Runs in money against a server that disturbs them, in a process of its own. ``LOGS`` is a folder.

Prints, for each of the scenarios, what the server billed and what the log says.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from inspect_ai import Task
from inspect_ai import eval as run_task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer
from inspect_ai.solver import TaskState, generate
from tests.host_inspect.paid_server import PRICE_LINE, PaidServer
from tests.host_inspect.race_tasks import QUIET

from evalbudget_inspect import budgeted
from loopback import GARBLED, Fault

BUDGET = 0.03
SCENARIOS: dict[str, tuple[int, list[str]]] = {
    "hung up": (1, ["none"]),
    "all": (8, ["none", "500", "429", "garbled"]),
}
_STATUS: dict[str, int | None] = {"none": None, "garbled": GARBLED, "500": 500, "429": 429}


@scorer(metrics=[mean()])
def asks() -> Scorer:
    """Asks a judge, and agrees with everybody."""

    async def score(state: TaskState, target: Target) -> Score:
        limited = GenerateConfig(max_tokens=20)
        where = os.environ["HERE_BASE_URL"]
        judge = get_model("openai-api/here/judge", base_url=where, config=limited)
        await judge.generate(state.output.completion)
        return Score(value=1.0)

    return score


def _played(folder: Path, at_once: int, faults: list[str]) -> dict[str, Any]:
    samples = [Sample(id=f"item-{i}", input=f"Question {i}.", target=f"{i}") for i in range(6)]
    quiz = Task(dataset=MemoryDataset(samples), solver=generate(), scorer=asks())
    folder.mkdir(parents=True)
    (folder / "prices.yaml").write_text(PRICE_LINE)
    draws = random.Random(7)

    def disturb(body: dict[str, Any]) -> Fault | None:
        if not faults or draws.random() > 0.1:
            return None
        name = faults.pop()
        return Fault(name, _STATUS[name])

    with PaidServer(latency=0.002, disturb=disturb) as server:
        os.environ |= {"HERE_BASE_URL": f"{server.url}/v1", "HERE_API_KEY": "unused"}
        (log,) = run_task(
            budgeted(quiz, budget=f"${BUDGET}", prices=str(folder / "prices.yaml"), sampler="uniform"),
            model=get_model("openai-api/here/m", memoize=False, config=GenerateConfig(max_tokens=20)),
            log_dir=str(folder),
            **QUIET,
            max_samples=at_once,
            fail_on_error=False,
        )
        billed = server.cost
    assert log.results is not None, log.error
    entries = [(score.metadata or {}).get("evalbudget") or {} for score in log.results.scores]
    entry = next(entry for entry in entries if "spent" in entry)
    return {"billed": billed, "status": log.status, **{k: entry[k] for k in ("spent", "readings", "costs")}}


if __name__ == "__main__":
    logs = Path(sys.argv[1])
    print(json.dumps({name: _played(logs / name, *given) for name, given in SCENARIOS.items()}))
