"""lm-eval's own output as recorded scores: what was paid for once can be replayed for nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalbudget import Allocation
from evalbudget.backtest import Bought, HowBought, LogColumns, RecordedScores, TaskName, as_written_by
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.judges import Call, share_weights
from evalbudget.repeats import Repeat
from evalbudget_lm_eval.host.answers import WEIGHT
from evalbudget_lm_eval.host.logfiles import SamplesFile, check_whole, samples_files
from evalbudget_lm_eval.judges.readings import Reading
from evalbudget_lm_eval.run.costs_in_records import PaidAnswers

_AVERAGES = ("mean", "nanmean")

_Score = tuple[str, int, float]
"""Who scored, which answer of the document (from 0), the score (nan if it failed)."""


def open_scores(
    path: Path,
    *,
    task: str | None = None,
    wanted: Callable[[SamplesFile], bool] = lambda file: True,
    category: str | None = None,
) -> RecordedScores | None:
    """A folder with ``samples_*.jsonl`` of lm-eval, or one such file; None if the path is neither.

    Models are the evaluated models, items the documents, repeats the answers of a document; several runs of
    one model add up. Where judges scored (``CyclicJudgeFilter``), they are the raters, and calls of theirs
    that failed are missing scores; elsewhere raters are the metrics that are a number per document and
    averaged, as ``metric``, or ``metric,filter`` where a task has several filters. Documents of several tasks
    are named ``task/doc_id``, and the tasks are their categories; those of one task have the categories of
    their ``category`` field, if any. Which answers may count for a mean is told by ``purchases`` and
    ``epochs``. Answers of runs in money cost what the bill beside their record says (``costs``).
    ``texts`` are the ends of the prompts, where the document follows the examples.

    Args:
        path: of the folder or the file.
        task: of several, the one to read.
        wanted: which files to read.
        category: field of the documents that says what they belong to, which all must have; None for
            ``category``, or the tasks, where there are several.

    Raises:
        InvalidInputError: a file is damaged, the same document differs between two of them, or there is no
            score at all.
        UnknownNameError: no file is of this task.
    """
    found = [file for file in samples_files(path) if wanted(file)]
    files = _newest([file for file in found if task in (None, file.task)])
    if not files and found and task is not None:
        raise UnknownNameError(f"task in {path}:", task, {file.task for file in found})
    if not files:
        return None
    check_whole(files, path)
    loaded: list[tuple[SamplesFile, list[dict[str, Any]]]] = []
    judged = False
    for file in files:
        with as_written_by("lm-eval", file.path):
            loaded.append((file, list(file.records(category=category or "category"))))
            judged = judged or any(map(_judged, loaded[-1][1]))
    paid = PaidAnswers()
    several = len({file.task for file in files}) > 1
    columns, categories = LogColumns(), _Categories(several=several, asked=category)
    bought: dict[str, dict[str, Bought]] = {}
    runs: dict[tuple[str, str], dict[str, int]] = {}  # of each model and task
    texts: dict[str, str] = {}
    for file, records in loaded:
        with as_written_by("lm-eval", file.path):
            known = runs.setdefault((file.model, file.task), {})
            number = known.setdefault(file.run, len(known))
            epochs = calls = 0
            filters = list(dict.fromkeys(str(record.get("filter", "none")) for record in records))
            unscored = _not_averaged(file)
            for record in records:
                item = categories.item(file, record)
                texts.setdefault(item, record["text"])
                read = list(_readings(record) if judged else _metrics(record, filters, unscored))
                weights = [_weight(record)] * len(read)
                if judged:  # scores of an answer have its weight together: of several responses, or judges
                    shared = share_weights([Call(0, 0, 0, value, _weight(record)) for *_, value in read])
                    weights = [call.weight for call in shared]
                columns.weights += weights
                for rater, epoch, value in read:
                    epochs, calls = max(epochs, epoch + 1), calls + 1
                    _add(columns, file, (number, epoch), item, rater, value)
                    columns.costs.append(paid.cost(file, int(record["doc_id"]), epoch))
            if not judged:
                calls = len({(record["doc_id"], record.get("epoch", 0)) for record in records})
            logs = bought.setdefault(file.model, {})
            logs[file.run] = _with(logs.get(file.run), _bought(file, records, epochs, cost=float(calls)))
    if not columns.items:
        raise InvalidInputError(
            f"{path} holds samples without a score: no metric is a number per document that is averaged (it "
            "may be --predict_only, or only f1, bleu, perplexity and the like)"
        )
    with as_written_by("lm-eval", path):
        recorded = columns.recorded({model: bought[model] for model in dict.fromkeys(columns.models)})
        return replace(
            recorded,
            categories=categories.of(recorded.items),
            texts=tuple(texts[item] for item in recorded.items),
            task=_task(files),
            one_measure=judged,
            one_generation=all(map(_kept, files)),
        )


def _task(files: Sequence[SamplesFile]) -> TaskName | None:
    """Of all files; None where they are of several."""
    names = {TaskName(file.task, file.version) for file in files}
    return names.pop() if len(names) == 1 else None


def _kept(file: SamplesFile) -> bool:
    """Whether every repeat of a document is a score of its one answer."""
    return (file.block or {}).get("repeat") == Repeat.JUDGE


class _Categories:
    """Names documents across files, and checks that a name always means the same document."""

    def __init__(self, *, several: bool, asked: str | None) -> None:
        self._several = several
        self._asked = asked
        self._labels: dict[str, str | None] = {}
        self._seen: dict[str, tuple[object, SamplesFile]] = {}

    def item(self, file: SamplesFile, record: Mapping[str, Any]) -> str:
        item = f"{file.task}/{record['doc_id']}" if self._several else str(record["doc_id"])
        own = record["category"]
        if own is None and self._asked is not None:
            raise InvalidInputError(
                f"document {record['doc_id']} in {file.path} has no {self._asked!r}; give the name of "
                "a field "
                "that all documents have"
            )
        by_task = self._several and self._asked is None
        self._labels[item] = file.task if by_task else None if own is None else str(own)
        fingerprint, first = self._seen.setdefault(item, (record.get("doc_hash"), file))
        if fingerprint != record.get("doc_hash"):
            raise InvalidInputError(
                f"document {record['doc_id']} of task {file.task!r} differs between {first.path} and "
                f"{file.path}: the data changed between the runs, so they cannot be compared; give the runs "
                "on one version of the data"
            )
        return item

    def of(self, items: Sequence[str]) -> tuple[str, ...] | None:
        labels = [self._labels[item] for item in items]
        return None if None in labels else tuple(str(label) for label in labels)


def _add(
    columns: LogColumns, file: SamplesFile, answer: tuple[int, int], item: str, rater: str, value: float
) -> None:
    columns.items.append(item)
    columns.scores.append(value)
    columns.models.append(file.model)
    columns.raters.append(rater)
    columns.repeats.append(answer)
    generation = answer
    if _kept(file):  # a judge's second score of it counts as one of another
        again = columns.again.get((f"{file.path}", item, rater), 0)
        columns.again[f"{file.path}", item, rater] = again + 1
        generation = (answer[0], again)
    columns.generations.append(generation)
    columns.logs.append(file.run)
    columns.epochs.append(answer[1] + 1)


def _weight(record: Mapping[str, Any]) -> float:
    """Of the answer; nan if it was held out, or if no weight was fixed."""
    weight = record.get(WEIGHT)
    return math.nan if weight is None else float(weight)


def _with(before: Bought | None, more: Bought) -> Bought:
    """Several tasks of one run, which had one budget."""
    if before is None:
        return more
    cost = (before.purchase.cost or 0.0) + (more.purchase.cost or 0.0)
    fixed = min(before.purchase.fixed_repeats, more.purchase.fixed_repeats)
    return Bought(replace(more.purchase, fixed_repeats=fixed, cost=cost), max(before.epochs, more.epochs))


def _newest(files: Sequence[SamplesFile]) -> list[SamplesFile]:
    """Runs that were continued wrote everything again: the last one speaks for those with its journal."""
    last: dict[tuple[str, str, str], SamplesFile] = {}
    for file in files:
        journal = (file.block or {}).get("journal")
        last[(file.model, file.task, str(journal or file.path))] = file
    return list(last.values())


def _judged(record: Mapping[str, Any]) -> bool:
    return next(_readings(record), None) is not None


def _readings(record: Mapping[str, Any]) -> Iterator[_Score]:
    for answer in record.get("filtered_resps") or ():
        for text in answer if isinstance(answer, list) else ():
            reading = Reading.parse(text)
            if reading is not None:
                yield reading.judge, reading.epoch, math.nan if reading.score is None else reading.score


def _metrics(record: Mapping[str, Any], filters: Sequence[str], unscored: frozenset[str]) -> Iterator[_Score]:
    chosen = record.get("filter", "none")
    for metric in record.get("metrics") or ():
        value = record.get(metric)
        if metric in unscored or isinstance(value, str) or not isinstance(value, bool | int | float):
            continue
        rater = metric if len(filters) == 1 else f"{metric},{chosen}"
        yield rater, int(record.get("epoch", 0)), float(value) if math.isfinite(value) else math.nan


def _not_averaged(file: SamplesFile) -> frozenset[str]:
    """Metrics whose total is no mean of the documents' numbers, by the task's configuration."""
    config = (file.results.get("configs") or {}).get(file.task) or {}
    named = [entry for entry in config.get("metric_list") or () if isinstance(entry, Mapping)]
    return frozenset(
        str(entry.get("metric")) for entry in named if entry.get("aggregation", "mean") not in _AVERAGES
    )


def _bought(file: SamplesFile, records: Sequence[Mapping[str, Any]], epochs: int, *, cost: float) -> Bought:
    """How a run's answers were bought; of one of ours without its results only the first ones may count."""
    block, allocation, fixed = file.block, Allocation.FIXED, 0
    if block is not None and "allocation" in block:
        judged = (block.get("judges") or {}).get(
            file.task
        ) or block  # where each response is judged for itself
        allocation, fixed = Allocation(block["allocation"]), int(judged["fixed_repeats"])
    elif block is not None:  # a race: how many documents a model was asked followed from its scores
        allocation = Allocation.ADAPTIVE
    elif any("epoch" in record for record in records):
        allocation, fixed = Allocation.ADAPTIVE, 1
    return Bought(HowBought(allocation, fixed, cost=cost), epochs)
