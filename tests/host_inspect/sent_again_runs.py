"""Runs against a server that hangs up, in a process of its own: the client leaves its connections open.

Prints, for each of the scenarios, what was billed and what the log says. ``LOGS`` is a folder.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
from pathlib import Path
from typing import Any

from inspect_ai import Task, eval_retry, task
from inspect_ai import eval as run_task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log
from inspect_ai.model import get_model
from inspect_ai.scorer import Score, Scorer, Target, includes, mean, scorer
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver
from tests.host_inspect.race_tasks import QUIET

from evalbudget_inspect import budgeted
from evalbudget_inspect.host import sent_again
from evalbudget_inspect.host.book_file import spent_by
from loopback import GARBLED, Server

ITEMS, BUDGET = 6, 18
HUNG_UP = None  # after the answer was computed
SCENARIOS: dict[str, dict[str, Any]] = {
    "hung up": {"status": HUNG_UP, "after": 4, "times": 2},
    "garbled": {"status": GARBLED, "after": 4, "times": 2},
    "error": {"status": 500, "after": 4, "times": 2},
    "unpaid": {"status": HUNG_UP, "after": BUDGET - 1, "times": math.inf},
    "judge unpaid": {"status": HUNG_UP, "after": BUDGET - 1, "times": math.inf, "model": "judge"},
}


@scorer(metrics=[mean()])
def asks() -> Scorer:
    """Asks a judge, and agrees with everybody."""

    async def score(state: TaskState, target: Target) -> Score:
        await get_model("openai-api/here/judge").generate(state.output.completion)
        return Score(value=1.0)

    return score


@solver
def fails() -> Solver:
    """Answers, fails then on the first sample, and presses Ctrl-C at the third."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        state = await generate(state)
        if "FAULTS" in os.environ and state.sample_id == "item-0":
            raise RuntimeError("answered, and lost")
        if "FAULTS" in os.environ and state.sample_id == "item-2":
            signal.raise_signal(signal.SIGINT)
        return state

    return solve


def _samples() -> list[Sample]:
    return [Sample(id=f"item-{i}", input=f"Question {i}.", target=f"{i}") for i in range(ITEMS)]


@task
def failing() -> Task:
    return Task(dataset=MemoryDataset(_samples()), solver=fails(), scorer=includes())


def _parked(folder: Path) -> dict[str, Any]:
    """A sample fails, and waits to be tried again when the run is interrupted; the run goes on."""
    with Server(latency=0.01) as server:
        os.environ |= {"HERE_BASE_URL": f"{server.url}/v1", "HERE_API_KEY": "unused", "FAULTS": "1"}
        run_task(
            "evalbudget_inspect/budgeted",
            task_args={"task": f"{__file__}@failing", "budget": BUDGET, "sampler": "uniform"},
            model=get_model("openai-api/here/m", memoize=False),
            retry_on_error=1,
            log_dir=str(folder),
            **QUIET,
            max_samples=1,
        )
        del os.environ["FAULTS"]
        log = read_eval_log(list_eval_logs(str(folder))[0])
        spent = spent_by([str(folder)], log.eval.task_id)
        (done,) = eval_retry(log, log_dir=str(folder), **QUIET)
        billed = sum(one.billed for one in server.served)
    return {
        "before": [log.status, *sorted(str(s.id) for s in log.samples or [] if s.error is None)],
        "spent before": spent,
        "billed": billed,
        **_said(done),
    }


def _said(log: EvalLog) -> dict[str, Any]:
    assert log.results is not None
    entries = [(score.metadata or {}).get("evalbudget") or {} for score in log.results.scores]
    entry = next(entry for entry in entries if "spent" in entry)
    return {key: entry[key] for key in ("spent", "readings", "failed", "failures", "summary")}


def _played(folder: Path, failure: dict[str, Any]) -> dict[str, Any]:
    judged = failure.get("model") == "judge"
    quiz = Task(dataset=MemoryDataset(_samples()), solver=generate(), scorer=asks() if judged else includes())
    with Server(latency=0.01) as server:
        os.environ |= {"HERE_BASE_URL": f"{server.url}/v1", "HERE_API_KEY": "unused"}
        server.fail(**failure)
        (log,) = run_task(
            budgeted(quiz, budget=BUDGET, sampler="uniform"),
            model=get_model("openai-api/here/m", memoize=False),
            log_dir=str(folder),
            **QUIET,
            max_samples=2,
        )
        billed, calls = sum(one.billed for one in server.served), server.calls()
    assert not sent_again._payers  # a run that has ended is let go
    return {
        "billed": billed,
        "calls": calls,
        **_said(log),
        "samples": len(log.samples or []),
        "judged": sum(one.billed and one.model == "judge" for one in server.served),
        "status": log.status,
        "kept": spent_by([str(folder)], log.eval.task_id),
        "limits": [sample.limit.reason for sample in log.samples or [] if sample.limit is not None],
    }


if __name__ == "__main__":
    logs = Path(sys.argv[1])
    played = {name: _played(logs / name, failure) for name, failure in SCENARIOS.items()}
    print(json.dumps({"parked": _parked(logs / "parked"), **played}))
