"""Judged tasks whose data are a file beside them, and the host run on them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lm_eval
import yaml
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

FILTER = "evalbudget_lm_eval.CyclicJudgeFilter"
METRIC = """\
metric_list:
  - metric: !function evalbudget_lm_eval.judged
    aggregation: !function evalbudget_lm_eval.panel
    higher_is_better: true
"""
PROCESS = """\
process_results: !function evalbudget_lm_eval.process_judged
metric_list: !function evalbudget_lm_eval.JUDGED_METRICS
"""


def write_judged(
    folder: Path,
    judges: list[Any],
    *,
    name: str = "essays",
    n: int = 12,
    repeats: int = 1,
    metrics: str = METRIC,
    generation: dict[str, Any] | None = None,
    target: str = "{{topic}}",
    task: dict[str, Any] | None = None,
    **options: Any,
) -> Path:
    """A folder with a task of ``n`` essays scored by judges; give it to ``--include_path``."""
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / f"{name}.jsonl"
    rows = [{"topic": f"topic {i}", "category": "ab"[i % 2], "names": [f"t{i}", "t"]} for i in range(n)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(data)}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "Write about {{topic}}.",
        "doc_to_target": target,
        "generation_kwargs": generation or {"until": ["\n"], "do_sample": True, "temperature": 1.0},
        "repeats": repeats,
        "num_fewshot": 0,
        "metadata": {"version": 1.0},
        **(task or {}),
    }
    block = yaml.safe_dump({"judges": judges, **options}, sort_keys=False)
    lines = "".join(f"        {line}\n" for line in block.splitlines())
    filters = f"filter_list:\n  - name: panel\n    filter:\n      - function: !function {FILTER}\n{lines}"
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(config, sort_keys=False) + filters + metrics)
    return folder


def load(folder: Path, name: str = "essays") -> dict[str, Any]:
    """The task as the host loads it."""
    return dict(TaskManager(include_path=str(folder), include_defaults=False).load([name]))


def evaluate(
    folder: Path,
    model_args: str,
    name: str = "essays",
    *,
    model: str = "local-chat-completions",
    output: Path | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The host's stock run in Python; with ``output`` it writes its files as its command does."""
    tracker = None if output is None else EvaluationTracker(output_path=str(output))
    found = lm_eval.simple_evaluate(
        model=model,
        model_args=model_args,
        tasks=name.split(","),
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        evaluation_tracker=tracker,
        **{"apply_chat_template": True, "bootstrap_iters": 0, **options},
    )
    assert found is not None
    if tracker is not None:
        samples = found.pop("samples")
        tracker.save_results_aggregated(results=found, samples=samples)
        for task, own in samples.items():
            tracker.save_results_samples(task_name=task, samples=own)
        found["samples"] = samples
    return dict(found)
