"""Output of lm-eval, written by hand: small folders that say whatever a test wants."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbudget.backtest import Declared, RecordedScores
from evalbudget_lm_eval.log_folder import open_scores

DATE = "2026-01-02T03-04-05.000000"
NAN = float("nan")


def sample(
    doc_id: int, scores: Mapping[str, object], *, question: object = None, **more: Any
) -> dict[str, Any]:
    """A line of a file of samples."""
    asked = f"question {doc_id}" if question is None else question
    return {
        "doc_id": doc_id,
        "doc": {"q": asked},
        "target": f"right {asked}",
        "arguments": {"gen_args_0": {"arg_0": f"{asked}"}},
        "resps": [[f"answer {doc_id} {sorted(map(str, scores.values()))}"]],
        "filtered_resps": [f"answer {doc_id}"],
        "filter": "none",
        "metrics": list(scores),
        "doc_hash": f"hash of {asked}",
        "prompt_hash": f"hash of the prompt of {asked}",
        "target_hash": f"hash of right {asked}",
        **scores,
        **more,
    }


def averages(*names: str, aggregation: str = "mean", better: bool = True) -> list[dict[str, Any]]:
    """A list of metrics."""
    return [{"metric": name, "aggregation": aggregation, "higher_is_better": better} for name in names]


def write_log(
    folder: Path,
    scores: Sequence[float] | Sequence[Mapping[str, Any]] = (1.0, 0.0, 1.0, 1.0),
    *,
    task: str = "toy",
    model: str = "org/m",
    date: str = DATE,
    args: object = None,
    metrics: list[dict[str, Any]] | None = None,
    task_config: Mapping[str, Any] | None = None,
    version: object = 1.0,
    shots: int = 0,
    asked: tuple[int, int] | None = None,
    config: Mapping[str, Any] | None = None,
    **results: Any,
) -> Path:
    """One run of one task.

    Args:
        folder: for both files.
        scores: of ``acc`` by document, or whole samples.
        task: its name.
        model: its name.
        date: of the run.
        args: of the model; None for its name.
        metrics: of the task's configuration; None for ``acc``, which is averaged.
        task_config: more of it.
        version: of the task.
        shots: examples.
        asked: of ``n-samples``, original and effective; None for as many as there are.
        config: of the run.
        results: other keys of the results.
    """
    folder.mkdir(parents=True, exist_ok=True)
    records = [
        dict(each) if isinstance(each, Mapping) else sample(i, {"acc": each}) for i, each in enumerate(scores)
    ]
    documents = len({record["doc_id"] for record in records})
    original, effective = asked or (documents, documents)
    told = {
        "results": {task: {"alias": task}},
        "configs": {
            task: {
                "task": task,
                "metric_list": averages("acc") if metrics is None else metrics,
                "output_type": "generate_until",
                **(task_config or {}),
            }
        },
        "versions": {task: version},
        "n-shot": {task: shots},
        "n-samples": {task: {"original": original, "effective": effective}},
        "config": {"model": "hf", "model_args": args or f"pretrained={model}", **(config or {})},
        "model_name": model,
        **results,
    }
    path = folder / f"samples_{task}_{date}.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / f"results_{date}.json").write_text(json.dumps(told))
    return path


def read(path: Path, **options: Any) -> RecordedScores:
    """What the reader makes of it."""
    found = open_scores(path, **options)
    assert found is not None
    return found


def declared(recorded: RecordedScores) -> Declared:
    """What it says beside the scores."""
    assert recorded.declared is not None
    return recorded.declared


def notes(recorded: RecordedScores) -> str:
    """All of them."""
    return "\n".join(declared(recorded).notes)


def mean(recorded: RecordedScores, rater: str | None = None) -> float:
    """Of the only model."""
    number = 0 if rater is None else recorded.raters.index(rater)
    scores = recorded.true_scores[0, :, number]
    return float(scores[~(scores != scores)].mean())
