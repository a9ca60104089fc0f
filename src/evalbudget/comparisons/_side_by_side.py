"""Several recordings as one whose models, settings or versions have names of their own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError
from evalbudget.report._merge import merge


def side_by_side(recordings: Mapping[str, RecordedScores], *, across_tasks: bool = False) -> RecordedScores:
    """All models of all recordings on the items that any of them has.

    A model that stands in several recordings, with other prompts or in other versions, goes by the name of
    the file, too: ``gpt-5 (short)``.

    Args:
        recordings: by path.
        across_tasks: take recordings of tasks of different names or versions for one task.

    Raises:
        InvalidInputError: recordings of different tasks or versions, or without an item in common.
    """
    if not across_tasks:
        _check_tasks(recordings)
    count = Counter(model for recorded in recordings.values() for model in recorded.models)
    named = [
        (
            path,
            replace(
                recorded,
                models=tuple(
                    model if count[model] == 1 else f"{model} ({label})" for model in recorded.models
                ),
            ),
        )
        for (path, recorded), label in zip(recordings.items(), _labels(list(recordings)), strict=True)
    ]
    return merge(named)


def _labels(paths: list[str]) -> list[str]:
    """The names of the files, or, where they are the same, the whole paths."""
    stems = [PurePath(path).stem or path for path in paths]
    return stems if len(set(stems)) == len(stems) else paths


def _check_tasks(recordings: Mapping[str, RecordedScores]) -> None:
    known = [(path, recorded.task) for path, recorded in recordings.items() if recorded.task is not None]
    for path, task in known[1:]:
        first, one = known[0]
        if task == one:
            continue
        what = "versions of the task" if task.name == one.name else "tasks"
        raise InvalidInputError(
            f"{first} and {path} are of different {what}, {one} and {task}, so their items may differ under "
            "the same ids; give logs of one task, or --across-tasks if their items are the same"
        )
