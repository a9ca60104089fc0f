"""Several recordings as one whose models have names of their own and whose items are the same questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import PurePath

from evalbudget.errors import InvalidInputError
from evalbudget.recorded._declared import Declared, Settings, is_version, names_by_settings
from evalbudget.recorded._merge import merge
from evalbudget.recorded._questions import ACROSS_TASKS, match_questions
from evalbudget.recorded._scores import RecordedScores


def side_by_side(recordings: Mapping[str, RecordedScores], *, across_tasks: bool = False) -> RecordedScores:
    """All models of all recordings on the items that any of them has.

    Items are paired by what was asked where the sources tell it, and by their ids elsewhere. A model that
    stands in several recordings goes by what its settings differ in, too, as in ``gpt-5 (hint=True)``, or,
    where nothing tells that, by the name of the file: ``gpt-5 (short)``.

    Args:
        recordings: by path.
        across_tasks: take recordings of tasks of different names or versions for one task, and ids for the
            same items whatever was asked under them.

    Raises:
        InvalidInputError: nothing given, recordings of different tasks or versions, without an item in
            common, or that say of one score that it is better high and better low.
    """
    if not recordings:
        raise InvalidInputError("there is nothing to report on; give a file or folder of scores")
    if len(recordings) == 1:
        (one,) = recordings.values()
        return _of_one_version(one) if across_tasks else one
    labels = _labels(list(recordings))
    if not across_tasks:
        _check_tasks(recordings)
    parts = [_declaring(recorded) for recorded in recordings.values()]
    digests = [dict(zip(part.items, _declared(part).digests, strict=True)) for part in parts]
    known = list(zip(labels, digests, strict=True))
    matched = match_questions(known, trust_ids=across_tasks, remedy=ACROSS_TASKS)
    named = []
    models = _models(parts, labels)
    for path, part, own, names in zip(recordings, parts, models, matched.names, strict=True):
        named.append((path, replace(part, models=own, items=tuple(names[item] for item in part.items))))
    whole = merge(named, matched.notes)
    return _of_one_version(whole) if across_tasks else whole


def _of_one_version(recorded: RecordedScores) -> RecordedScores:
    """The same whose models are of one version of the task, as a person says."""
    told = recorded.declared
    if told is None:
        return recorded
    settings = tuple({k: v for k, v in own.items() if not is_version(k)} for own in told.settings)
    return replace(recorded, declared=replace(told, settings=settings))


def _declared(recorded: RecordedScores) -> Declared:
    assert recorded.declared is not None
    return recorded.declared


def _declaring(recorded: RecordedScores) -> RecordedScores:
    """The same with settings that tell the version of the task, where it is known."""
    told = recorded.declared or Declared.of(recorded.models, recorded.items, recorded.raters)
    version: Settings = {}
    if recorded.task is not None and recorded.task.version is not None:
        version = {"version": recorded.task.version}
    settings = tuple(own if any(map(is_version, own)) else {**version, **own} for own in told.settings)
    return replace(recorded, declared=replace(told, settings=settings))


def _models(parts: list[RecordedScores], labels: list[str]) -> list[tuple[str, ...]]:
    """Names of the models of each recording, each name once."""
    flat = [(model, settings) for part in parts for model, settings in _named_settings(part)]
    told = names_by_settings([model for model, _ in flat], [settings for _, settings in flat])
    count = Counter(told)
    found, start = [], 0
    for part, label in zip(parts, labels, strict=True):
        own = told[start : start + len(part.models)]
        found.append(tuple(name if count[name] == 1 else f"{name} ({label})" for name in own))
        start += len(part.models)
    return found


def _named_settings(part: RecordedScores) -> list[tuple[str, Mapping[str, str]]]:
    return list(zip(part.models, _declared(part).settings, strict=True))


def _labels(paths: list[str]) -> list[str]:
    """The names of the files, or, where they are the same, the whole paths."""
    stems = [PurePath(path).stem or path for path in paths]
    return stems if len(set(stems)) == len(stems) else paths


def _check_tasks(recordings: Mapping[str, RecordedScores]) -> None:
    known = [(path, recorded) for path, recorded in recordings.items() if recorded.task is not None]
    for path, recorded in known[1:]:
        first, one = known[0]
        if recorded.task == one.task or recorded.task is None or one.task is None:
            continue
        same_name = recorded.task.name == one.task.name
        if same_name and _tells_questions(one) and _tells_questions(recorded):
            continue
        what = "versions of the task" if same_name else "tasks"
        raise InvalidInputError(
            f"{first} and {path} are of different {what}, {one.task} and {recorded.task}, so their items may "
            "differ under the same ids; give logs of one task, or --across-tasks if their items are the same"
        )


def _tells_questions(recorded: RecordedScores) -> bool:
    return recorded.declared is not None and all(recorded.declared.digests)
