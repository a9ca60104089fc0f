"""Which logs of a folder are read together: those of one task, or of a group that the host averages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_lm_eval.host.logfiles import SamplesFile
from evalbudget_lm_eval.logs.race import last_block_of

_NAMED = 8
"""Tasks that a message names."""


@dataclass(frozen=True)
class Group:
    """Tasks of which the host reports a mean.

    Attributes:
        name: of the group.
        tasks: all below it.
        metrics: the host's ``metric,filter`` that are averaged.
        version: of the group; None if it has none.
        alike: the host weighs tasks alike, whatever their sizes, and they have different sizes.
    """

    name: str
    tasks: frozenset[str]
    metrics: frozenset[str]
    version: str | None
    alike: bool


@dataclass(frozen=True)
class Chosen:
    """What is read together.

    Attributes:
        files: of one task, of a group, or of a race of tasks with other prompts.
        group: that the tasks belong to; None for one task.
        by_task: documents go by the names ``task/doc_id``.
        apart: scores go by the names ``task/metric``, since tasks weigh alike, and not documents.
    """

    files: Sequence[SamplesFile]
    group: Group | None = None
    by_task: bool = False
    apart: bool = False

    @property
    def notes(self) -> list[str]:
        """On tasks of the group that are not there, and on a group whose number is not read."""
        if self.group is None:
            return []
        found, name = [], self.group.name
        here = {file.task for file in self.files} & self.group.tasks
        if len(here) < len(self.group.tasks):
            found.append(f"{len(here):,} of the {len(self.group.tasks):,} tasks of group {name} are here.")
        if self.apart:
            found.append(
                f"Group {name} weighs its tasks alike (weight_by_size: false), so its number is no mean of "
                "documents and is not read: its tasks stand by themselves."
            )
        return found


def choose(files: Sequence[SamplesFile], path: Path, task: str | None) -> Chosen:
    """Those of the task or group that is named, or of the only one there is.

    Args:
        files: what was found.
        path: where.
        task: name of a task or a group; None for all.

    Raises:
        InvalidInputError: they are of several tasks that the host does not average.
        UnknownNameError: no file is of this task.
    """
    tasks = {file.task for file in files}
    if task in tasks or (task is None and len(tasks) == 1):
        return Chosen([file for file in files if task in (None, file.task)])
    groups = {name: group for name, group in _groups(files).items() if group.tasks & tasks}
    if task is not None:
        if task not in groups:
            raise UnknownNameError(f"task in {path}:", task, {*tasks, *groups})
        group: Group | None = groups[task]
    else:
        covering = [group for group in groups.values() if tasks <= group.tasks]
        group = min(covering, key=lambda group: len(group.tasks), default=None)
    if group is not None:
        own = [file for file in files if file.task in group.tasks]
        apart = group.alike and len({file.task for file in own}) > 1
        return Chosen(own, group, by_task=True, apart=apart)
    if _is_one_race(files):
        return Chosen(files)
    others = f" or of a group of them ({_listed(groups)})" if groups else ""
    raise InvalidInputError(
        f"{path} holds {len(tasks):,} tasks ({_listed(tasks)}), and their scores are no one mean; choose one "
        f"with --task (task=){others}, or give the samples_*.jsonl of one; if they are one task under "
        "several names, give the samples_*.jsonl of each, with --across-tasks"
    )


def _is_one_race(files: Sequence[SamplesFile]) -> bool:
    """Whether they are of one race in which every arm had one task, with the same documents."""
    tasks: dict[str, set[str]] = {}
    for file in files:
        tasks.setdefault(file.model, set()).add(file.task)
    return last_block_of(files) is not None and all(len(own) == 1 for own in tasks.values())


def _groups(files: Iterable[SamplesFile]) -> dict[str, Group]:
    found: dict[str, Group] = {}
    for results in {id(file.results): file.results for file in files}.values():
        below, averaged = results.get("group_subtasks"), results.get("groups")
        if not isinstance(below, Mapping) or not isinstance(averaged, Mapping):
            continue
        for name, rows in averaged.items():
            tasks, metrics = frozenset(_leaves(name, below)), _averaged(rows)
            if name not in below or not metrics:
                continue
            earlier = found.get(name)
            found[name] = Group(
                str(name),
                tasks | (earlier.tasks if earlier else frozenset()),
                metrics | (earlier.metrics if earlier else frozenset()),
                _version(results, name),
                _alike(results, rows, tasks, metrics) or (earlier is not None and earlier.alike),
            )
    return found


def _version(results: Mapping[str, Any], name: str) -> str | None:
    versions = results.get("versions")
    version = versions.get(name) if isinstance(versions, Mapping) else None
    return None if version in (None, "N/A") else str(version)


def _leaves(name: str, below: Mapping[str, Any]) -> list[str]:
    """All tasks below a group, whose groups may have groups."""
    found, left, seen = [], [name], {name}
    while left:
        one = left.pop()
        inner = below.get(one)
        if not isinstance(inner, list) or not inner:
            found.append(str(one))
        for each in inner if isinstance(inner, list) else ():
            if each not in seen:
                seen.add(each)
                left.append(each)
    return found


def _averaged(rows: object) -> frozenset[str]:
    keys = rows if isinstance(rows, Mapping) else ()
    return frozenset(key for key in keys if "," in key and not key.partition(",")[0].endswith("_stderr"))


def _alike(
    results: Mapping[str, Any], rows: Mapping[str, Any], tasks: Iterable[str], metrics: Iterable[str]
) -> bool:
    """Whether a group's number is the mean of its tasks' numbers, and not that of their documents."""
    own, counted = results.get("results") or {}, results.get("n-samples") or {}
    for key in metrics:
        having = [task for task in tasks if isinstance((own.get(task) or {}).get(key), int | float)]
        total = rows.get(key)
        if not having or not isinstance(total, int | float):
            continue
        values = [float(own[task][key]) for task in having]
        by_size = []
        for told in ("effective", "original"):
            sizes = [int((counted.get(task) or {}).get(told) or 0) for task in having]
            if all(sizes):
                pairs = zip(values, sizes, strict=True)
                by_size.append(math.fsum(value * size for value, size in pairs) / sum(sizes))
        plain = math.fsum(values) / len(values)
        if math.isclose(total, plain, rel_tol=1e-9) and not any(
            math.isclose(total, mean, rel_tol=1e-9) for mean in by_size
        ):
            return bool(by_size)
    return False


def _listed(names: Iterable[str]) -> str:
    ordered = sorted(names)
    rest = f" and {len(ordered) - _NAMED:,} more" if len(ordered) > _NAMED else ""
    return ", ".join(ordered[:_NAMED]) + rest
