"""Logs that stand in a folder twice count once."""

from __future__ import annotations

from collections.abc import Sequence

from evalbudget_lm_eval.logs.log import Log, Record


def newest(logs: Sequence[Log]) -> tuple[list[Log], list[str]]:
    """Runs that went on wrote everything again: the last one speaks for those with its journal.

    Args:
        logs: by date.

    Returns:
        These, and a note on the others.
    """
    last: dict[tuple[str, str, str], Log] = {}
    for log in logs:
        journal = (log.file.block or {}).get("journal")
        last[log.file.model, log.file.task, str(journal or log.file.path)] = log
    earlier = len(logs) - len(last)
    many = "1 log of a run that went on is" if earlier == 1 else f"{earlier:,} logs of runs that went on are"
    told = f"{many} left out: the samples stand in later ones."
    return list(last.values()), [told] if earlier else []


def without_copies(logs: Sequence[Log], names: Sequence[str]) -> tuple[list[int], list[str]]:
    """Numbers of the logs that are no copies, and a note on the others.

    A copy has the same samples, answers included, as another log of the same model, task and settings; or it
    has a part of the samples of a log of the same date, to the microsecond. Samples without results, of
    which only a folder says whose they are, are a copy of those with the same content, too.

    Args:
        logs: by date.
        names: of what each of them evaluated.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for number, (log, name) in enumerate(zip(logs, names, strict=True)):
        groups.setdefault((name, log.file.task), []).append(number)
    copies = _renamed(logs)
    for group in groups.values():
        group = [number for number in group if number not in copies]
        if len(group) > 1:
            copies |= _copies(logs, group)
    notes = [
        f"{logs[copy].label} has the samples of {logs[first].label} again: counted once."
        for copy, first in sorted(copies.items())
    ]
    return [number for number in range(len(logs)) if number not in copies], notes


def _renamed(logs: Sequence[Log]) -> dict[int, int]:
    """The numbers of logs without results that have the samples of one log or another, and of which."""
    found: dict[int, int] = {}
    firsts: dict[tuple[str, frozenset[int]], int] = {}
    for number in sorted(range(len(logs)), key=lambda number: (not logs[number].file.results, number)):
        content = frozenset(map(_content, logs[number].records))
        first = firsts.setdefault((logs[number].file.task, content), number)
        if first != number and content and not logs[number].file.results:
            found[number] = first
    return found


def _copies(logs: Sequence[Log], group: Sequence[int]) -> dict[int, int]:
    """The numbers of logs that are copies, and of what."""
    found: dict[int, int] = {}
    by_content: dict[frozenset[int], int] = {}
    by_date: dict[str, list[tuple[int, frozenset[int]]]] = {}
    largest_first = sorted(group, key=lambda number: (-len(logs[number].records), number))
    for number in largest_first:
        content = frozenset(map(_content, logs[number].records))
        if not content:
            continue
        own = by_date.setdefault(logs[number].file.date, [])
        first = by_content.setdefault(content, number)
        if first == number:
            first = next((other for other, samples in own if content <= samples), number)
        if first != number:
            found[number] = first
        own.append((number, content))
    return found


def _content(record: Record) -> int:
    told = [record.get(key) for key in ("doc_id", "epoch", "filter", "said", "phase", "filtered_resps")]
    return hash(str(told + [record.get(metric) for metric in record.get("metrics") or ()]))
