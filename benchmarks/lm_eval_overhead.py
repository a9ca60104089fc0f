"""Overhead on lm-eval: a round against the stock host's own, and a whole budgeted run against a stock one.

Both are ratios of times in the same process, on a model that answers at once. A round is one call of the
host's ``evaluate`` on 32 of 10,000 documents: stock with ``samples=``, ours on requests built once. The whole
run is ``simple_evaluate`` on a generation task of 2,000 documents, stock and with ``uniform`` and a budget of
2,000 calls; and ``eb-bernstein`` with 8,000 calls against stock on 8,000 documents. The better of three runs
each counts.

    python benchmarks/lm_eval_overhead.py
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
os.environ.setdefault("TQDM_DISABLE", "1")

import lm_eval
from lm_eval.api.model import LM
from lm_eval.evaluator import evaluate
from lm_eval.tasks import TaskManager

from evalbudget_lm_eval import budgeted
from evalbudget_lm_eval.host.host_evaluate import Asked, PrimedTasks

ROUND = 32


class EchoModel(LM):  # type: ignore[misc]
    """Answers at once."""

    def generate_until(self, requests: list[Any], disable_tqdm: bool = False) -> list[str]:
        """The same for everything, and every third time something else."""
        return ["42" if i % 3 else "7" for i, _ in enumerate(requests)]

    def loglikelihood(self, requests: list[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """Not used."""
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Any], disable_tqdm: bool = False) -> list[float]:
        """Not used."""
        raise NotImplementedError


def write_task(folder: Path, n: int) -> str:
    """A generation task of so many documents; returns its name."""
    name = f"echo_{n}"
    data = folder / f"{name}.jsonl"
    data.write_text("".join(json.dumps({"text": f"question {i}", "answer": "42"}) + "\n" for i in range(n)))
    config = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{text}}",
        "doc_to_target": "{{answer}}",
        "generation_kwargs": {"until": ["\n"], "do_sample": True, "temperature": 1.0},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    (folder / f"{name}.yaml").write_text(json.dumps(config))
    return name


def best_of(run: Callable[[], object], times: int = 3) -> float:
    """Seconds of the fastest run."""
    found = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        found.append(time.perf_counter() - started)
    return min(found)


def round_ratio(folder: Path, n: int, rounds: int = 10) -> tuple[float, float]:
    """Seconds per round: ours, and the stock host's."""
    name = write_task(folder, n)
    manager = TaskManager(include_path=str(folder), include_defaults=False)
    loaded = manager.load([name])
    lm = EchoModel()
    chosen = [list(range(start, n, n // ROUND))[:ROUND] for start in range(rounds)]
    stock = best_of(lambda: [evaluate(lm, loaded, samples={name: ids}, bootstrap_iters=0) for ids in chosen])
    with PrimedTasks(lm, loaded) as primed:
        primed.run([Asked(name, 0, 0)])
        ours = best_of(lambda: [primed.run([Asked(name, doc, 0) for doc in ids]) for ids in chosen])
    return ours / rounds, stock / rounds


def run_ratio(folder: Path, n: int, sampler: str, budget: int) -> tuple[float, float]:
    """Seconds of a whole run: with a budget, and stock on as many documents as that buys calls."""
    own, many = write_task(folder, n), write_task(folder, budget)
    manager = TaskManager(include_path=str(folder), include_defaults=False)

    def run(name: str) -> None:
        lm_eval.simple_evaluate(model=EchoModel(), tasks=[name], task_manager=manager, bootstrap_iters=0)

    def budgeted_run() -> None:
        (folder / "journal.db").unlink(missing_ok=True)
        with budgeted(sampler=sampler, budget=budget, journal=folder / "journal.db"):
            run(own)

    run(own)  # data sets are prepared once
    run(many)
    return best_of(budgeted_run), best_of(lambda: run(many))


def main() -> None:
    """Measure and print."""
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for n in (1_000, 10_000):
            ours, stock = round_ratio(folder, n)
            print(
                f"round of {ROUND} of {n:>6,} documents: {1e3 * ours:7.1f} ms, stock {1e3 * stock:7.1f} ms, "
                f"ratio {ours / stock:.2f}",
                flush=True,
            )
        for n, sampler, budget in ((2_000, "uniform", 2_000), (2_000, "eb-bernstein", 8_000)):
            ours, stock = run_ratio(folder, n, sampler, budget)
            print(
                f"{sampler}, {budget:,} calls on {n:,} documents: {ours:.2f} s, stock {stock:.2f} s, "
                f"ratio {ours / stock:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
