"""Documents that a log should have and has not: what the results count against what is in the file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from evalbudget.backtest import AtWorst, asked_again
from evalbudget.design import LARGEST
from evalbudget_lm_eval.logs.log import Log
from evalbudget_lm_eval.logs.metrics import is_number


@dataclass(frozen=True, slots=True)
class Missing:
    """Of one log.

    Attributes:
        documents: ids of those without a record, by filter.
        whole: nothing else is missing, as far as the results tell; False if nothing tells it.
        notes: for people.
        limit: how many documents were evaluated, and how many there are; None if all were.
    """

    documents: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    whole: bool = True
    notes: tuple[str, ...] = ()
    limit: tuple[int, int] | None = None


def missing_from(log: Log, name: str) -> Missing:
    """What is missing.

    Args:
        log: of a task.
        name: of what was evaluated.
    """
    file = log.file
    if file.block is not None:
        return _of_our_run(log, name)
    if not file.results:
        return Missing(whole=False)
    counted = file.about("n-samples")
    if not isinstance(counted, Mapping) or not isinstance(counted.get("effective"), int):
        return Missing(whole=file.config.get("limit") is not None)  # older results do not count documents
    asked, original = counted["effective"], counted.get("original")
    notes = []
    limit = (asked, original) if isinstance(original, int) and original > asked else None
    first = set(range(asked)) if limit is None or file.config.get("limit") is not None else None
    absent: dict[str, tuple[int, ...]] = {}
    whole = True
    for chosen in log.filters or (_only_filter(log),):
        here = {int(record["doc_id"]) for record in log.records if record["filter"] == chosen}
        if len(here) == asked:
            continue
        if len(here) > asked:
            notes.append(
                f"{log.label} has {len(here):,} documents of {file.task}, and its results say {asked:,}; all "
                "are read."
            )
            continue
        told = f"{asked - len(here):,} of the {asked:,} documents of {file.task} that {name} answered"
        if first is not None and here <= first and not _maybe_chosen(log, here):
            absent[chosen] = tuple(sorted(first - here))
            notes.append(f"{told} are not in {log.label}: they count as failed.")
        else:
            whole = False
            notes.append(f"{told} are not in {log.label}, and nothing tells which.")
    return Missing(absent, whole, tuple(notes), limit)


def _maybe_chosen(log: Log, here: set[int]) -> bool:
    """Whether the documents may be those of ``--samples``, and none of them is missing."""
    # results of 0.4.9 to 0.4.11 count all documents then; later ones tell how many there were (sample_len)
    rows = log.file.about("results") or {}
    version = re.match(r"(\d+)\.(\d+)\.(\d+)", str(log.file.results.get("lm_eval_version")))
    if "sample_len" in rows or version is None or tuple(map(int, version.groups())) < (0, 4, 9):
        return False
    return here != set(range(len(here)))  # what is cut off ends early


def _of_our_run(log: Log, name: str) -> Missing:
    """Documents that a run of ours asked in vain, and scores that it counted and that are gone."""
    block = log.file.block or {}
    in_vain = tuple(map(int, (block.get("in_vain") or {}).get(log.file.task) or ()))
    notes = []
    if in_vain:
        many = f"1 document of {log.file.task} has"
        if len(in_vain) > 1:
            many = f"{len(in_vain):,} documents of {log.file.task} have"
        failures = block.get("failures") or {}
        why = f" ({max(failures, key=failures.__getitem__)})" if failures else ""
        notes.append(f"{many} no score of {name}: every call failed{why}.")
    told = (block.get("tasks") or {}).get(log.file.task) or {}
    bought = told.get("readings")
    whole = True
    if bought and log.file.shared is None:
        metric = str((block.get("score") or {}).get(log.file.task))
        scores = _scores(log, metric)
        scored = sum(map(len, scores.values()))
        whole = log.judged or scored >= sum(bought)
        if not whole:
            notes.append(
                f"{sum(bought) - scored:,} of the {sum(bought):,} scores of {name} are not in {log.label}."
            )
        failed = {doc: n for doc, n in zip(told["doc_id"], told.get("failed") or (), strict=False) if n}
        if failed and (scores or log.judged):
            worst = {}
            if not log.judged:
                low = (told.get("range") or [min(map(min, scores.values()))])[0]
                worst[metric] = AtWorst.of(scores, failed, low)
            again = sum(failed.values())
            notes.append(asked_again(again, sum(bought) + again, name, worst))
    return Missing(dict.fromkeys(log.filters, in_vain), whole, tuple(notes))


def _scores(log: Log, score: str) -> dict[int, list[float]]:
    """The scores by the host's ``metric,filter`` that are in a log, by document."""
    metric, _, chosen = score.partition(",")
    found: dict[int, list[float]] = {}
    for record in log.records:
        value = record.get(metric)
        if record["filter"] == chosen and is_number(value) and abs(value) <= LARGEST:
            found.setdefault(int(record["doc_id"]), []).append(float(value))
    return found


def _only_filter(log: Log) -> str:
    """Of a file without records."""
    listed = log.file.task_config.get("filter_list") or ()
    return next((str(one["name"]) for one in listed if isinstance(one, Mapping) and "name" in one), "none")
