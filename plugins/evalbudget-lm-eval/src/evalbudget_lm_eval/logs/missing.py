"""Documents that a log should have and has not: what the results count against what is in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from evalbudget_lm_eval.logs.log import Log


@dataclass(frozen=True, slots=True)
class Missing:
    """Of one log.

    Attributes:
        documents: ids of those without a record, by filter.
        whole: nothing else is missing, as far as the results tell; False if nothing tells it.
        notes: for people.
    """

    documents: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    whole: bool = True
    notes: tuple[str, ...] = ()


def missing_from(log: Log, name: str) -> Missing:
    """What is missing.

    Args:
        log: of a task.
        name: of what was evaluated.
    """
    file = log.file
    if file.block is not None:
        return _given_up(log, name)
    if not file.results:
        return Missing(whole=False)
    counted = file.about("n-samples")
    if not isinstance(counted, Mapping) or not isinstance(counted.get("effective"), int):
        return Missing()
    asked, original = counted["effective"], counted.get("original")
    notes = []
    if isinstance(original, int) and original > asked:
        limit = file.config.get("limit")
        how = f" (--limit {limit:g})" if isinstance(limit, int | float) else ""
        notes.append(f"{name}: {asked:,} of the {original:,} documents of {file.task} were evaluated{how}.")
    first = set(range(asked)) if original == asked or file.config.get("limit") is not None else None
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
        if first is not None and here <= first:
            absent[chosen] = tuple(sorted(first - here))
            notes.append(f"{told} are not in {log.label}: they count as failed.")
        else:
            whole = False
            notes.append(f"{told} are not in {log.label}, and nothing tells which.")
    return Missing(absent, whole, tuple(notes))


def _given_up(log: Log, name: str) -> Missing:
    """Documents that a run of ours closed without a score."""
    closed = (log.file.block or {}).get("closed") or ()
    own = [one.rpartition(":") for one in map(str, closed)]
    here = {int(record["doc_id"]) for record in log.records}
    lost = [int(doc) for task, _, doc in own if task == log.file.task and int(doc) not in here]
    if not lost:
        return Missing()
    many = f"1 document of {log.file.task} has"
    if len(lost) > 1:
        many = f"{len(lost):,} documents of {log.file.task} have"
    told = f"{many} no score of {name}: given up after failures."
    return Missing(dict.fromkeys(log.filters, tuple(lost)), notes=(told,))


def _only_filter(log: Log) -> str:
    """Of a file without records."""
    listed = log.file.task_config.get("filter_list") or ()
    return next((str(one["name"]) for one in listed if isinstance(one, Mapping) and "name" in one), "none")
