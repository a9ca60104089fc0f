"""One log, read into memory: the samples of one task in one run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalbudget.backtest import as_written_by
from evalbudget.errors import InvalidInputError
from evalbudget.repeats import Repeat
from evalbudget_lm_eval.host.logfiles import SamplesFile, Unreadable
from evalbudget_lm_eval.judges.readings import Reading

_FIELDS = frozenset(
    {
        "arguments",
        "category",
        "cost",
        "doc",
        "doc_hash",
        "doc_id",
        "epoch",
        "filter",
        "filtered_resps",
        "metrics",
        "prompt_hash",
        "question",
        "resps",
        "said",
        "target",
        "target_hash",
        "text",
        "phase",
    }
)
"""Of a record, what is no metric."""

Record = Mapping[str, Any]
_TRUTHS = {"True": 1.0, "False": 0.0}


@dataclass(frozen=True, eq=False)
class Log:
    """The samples of one task in one run.

    Attributes:
        file: they stand in.
        records: one per document, repeat and filter.
        label: of the file, for people.
        filters: their names; each has its own record of an answer.
        judged: judges scored, and not the task's metrics.
        cluster: field by which a run of ours clustered the documents; None if it did not, or if another field
            is read.
    """

    file: SamplesFile
    records: Sequence[Record]
    label: str
    filters: tuple[str, ...]
    judged: bool
    cluster: str | None

    @classmethod
    def read(cls, file: SamplesFile, path: Path, category: str | None) -> Log:
        """Read a file.

        Args:
            file: with the samples.
            path: that it was found at.
            category: field of the documents that says what they belong to; None for that by which a run of
                ours clustered them, or else ``category``.

        Raises:
            InvalidInputError: it is not what lm-eval writes.
        """
        with as_written_by("lm-eval", file.path):
            clustered = (file.block or {}).get("cluster")
            records = list(file.records(category=category or clustered or "category"))
            for record in records:
                int(record["doc_id"])
            if any("filter" not in record for record in records):
                _name_filters(records, file)
            if any("metrics" not in record for record in records):
                _name_metrics(records, file)
            _make_numbers(records, file)
            return cls(
                file,
                records,
                cluster=clustered if category in (None, clustered) else None,
                label=f"{file.path.relative_to(path.parent)}",
                filters=tuple(dict.fromkeys(str(record["filter"]) for record in records)),
                judged=any(next(readings(record), None) is not None for record in records),
            )

    @property
    def kept(self) -> bool:
        """Whether every repeat of a document is a score of its one answer."""
        return (self.file.block or {}).get("repeat") == Repeat.JUDGE


def read_logs(
    files: Sequence[SamplesFile], unreadable: Sequence[Unreadable], path: Path, category: str | None
) -> tuple[list[Log], list[Unreadable]]:
    """All logs that can be read, and the others.

    Args:
        files: with the samples.
        unreadable: files that are known to be damaged.
        path: that they were found at.
        category: field of the documents that says what they belong to; None for the usual one.

    Raises:
        InvalidInputError: one cannot be read, and is the one that was named, or the only one of its task.
    """
    logs: list[Log] = []
    lost = list(unreadable)
    for file in files:
        try:
            logs.append(Log.read(file, path, category))
        except InvalidInputError as ex:
            lost.append(Unreadable(file.path, file.task, str(ex), file.model))
    tasks = {log.file.task for log in logs}
    for one in lost:
        if one.task not in tasks or one.path == path:
            raise InvalidInputError(one.told)
    return logs, lost


def readings(record: Record) -> Iterator[Reading]:
    """What judges said of a document's answers."""
    for answer in record.get("filtered_resps") or ():
        for text in answer if isinstance(answer, list) else ():
            reading = Reading.parse(text)
            if reading is not None:
                yield reading


def _make_numbers(records: Sequence[dict[str, Any]], file: SamplesFile) -> None:
    """Earlier hosts wrote numpy's numbers as text: that they are some is told by the totals."""
    rows = file.about("results")
    totals = {key for key, value in (rows or {}).items() if isinstance(value, int | float)}
    for record in records:
        for metric in record.get("metrics") or ():
            told = record.get(metric)
            if isinstance(told, str) and f"{metric},{record['filter']}" in totals:
                with suppress(ValueError):
                    record[metric] = _TRUTHS[told] if told in _TRUTHS else float(told)


def _name_filters(records: Sequence[dict[str, Any]], file: SamplesFile) -> None:
    """Before 0.4.3 records did not say of which filter they are: they come filter by filter."""
    listed = file.task_config.get("filter_list")
    known = [str(one.get("name")) for one in listed or () if isinstance(one, Mapping)]
    seen: Counter[tuple[int, int]] = Counter()
    for record in records:
        one = int(record["doc_id"]), int(record.get("epoch", 0))
        place = seen[one]
        seen[one] += 1
        told = known[place] if place < len(known) else "none" if place == 0 else f"filter {place + 1}"
        record.setdefault("filter", told)


def _name_metrics(records: Sequence[dict[str, Any]], file: SamplesFile) -> None:
    """Before 0.4.7 records did not list their metrics; the results do."""
    known = {key.partition(",")[0] for key in file.about("results") or () if "," in key}
    known = {metric for metric in known if not metric.endswith("_stderr")}
    for record in records:
        own = [key for key in record if key not in _FIELDS and (not known or key in known)]
        record.setdefault("metrics", own)
