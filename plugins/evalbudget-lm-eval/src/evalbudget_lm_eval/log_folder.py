"""lm-eval's own output as recorded scores: what was paid for once can be replayed for nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from evalbudget.backtest import Declared, RaceRecord, RecordedScores, TaskName, as_written_by, few
from evalbudget.errors import InvalidInputError
from evalbudget.repeats.estimates import Strata
from evalbudget_lm_eval.host.logfiles import (
    SamplesFile,
    Unreadable,
    check_whole,
    readable_files,
    results_without_samples,
)
from evalbudget_lm_eval.logs.copies import newest, without_copies
from evalbudget_lm_eval.logs.documents import Documents
from evalbudget_lm_eval.logs.log import Log, read_logs
from evalbudget_lm_eval.logs.metrics import Metrics, direction, reducer, score_range
from evalbudget_lm_eval.logs.missing import missing_from
from evalbudget_lm_eval.logs.notes import Notes
from evalbudget_lm_eval.logs.race import last_block_of
from evalbudget_lm_eval.logs.readings import Readings
from evalbudget_lm_eval.logs.settings import named_by_settings
from evalbudget_lm_eval.logs.tasks import Chosen, choose


def open_scores(
    path: Path,
    *,
    task: str | None = None,
    wanted: Callable[[SamplesFile], bool] = lambda file: True,
    of_tasks: Collection[str] = (),
    category: str | None = None,
) -> RecordedScores | None:
    """A folder with ``samples_*.jsonl`` of lm-eval, or one such file; None if the path is neither.

    Models are the evaluated models, by their names and by the settings that differ among logs of one model;
    several runs with the same settings add up, and a copy of a log counts once. Items are the documents,
    matched by what was asked. Repeats are the answers of a document. Where judges scored
    (``CyclicJudgeFilter``), they are the raters, and calls of theirs that failed are missing scores;
    elsewhere raters are the metrics that are a number per document and averaged, as ``metric``, or
    ``metric,filter`` where a task has several filters. Documents of a group of tasks are named
    ``task/doc_id``, and the tasks are their categories; where the group weighs its tasks alike, raters are
    named ``task/metric`` and have no mean together. Those of one task have the categories of their
    ``category`` field, if any. Which answers may count for a mean is told by ``purchases`` and ``epochs``.
    Answers of runs in money cost what the bill beside their record says (``costs``). ``texts`` are the ends
    of the prompts, where the document follows the examples. What else the logs say is in ``declared``, and a
    race's verdict in ``race``.

    Args:
        path: of the folder or the file.
        task: the task or the group of tasks to read; None for the only one.
        wanted: which files to read.
        of_tasks: read these together, whether or not the host averages them.
        category: field of the documents that says what they belong to, which all must have; None for
            ``category``, or the tasks, where there are several.

    Raises:
        InvalidInputError: a file is damaged and none of its task is whole, there are several tasks that are
            no group, two logs disagree on which way a score is better, or there is no score at all.
        UnknownNameError: no file is of this task.
    """
    files, unreadable = readable_files(path)
    with as_written_by("lm-eval", path):
        files = [file for file in files if wanted(file)]
        if not files and unreadable:
            raise InvalidInputError(unreadable[0].told)
        if not files:
            _check_results(path)
            return None
        if of_tasks:
            named = [file for file in files if file.task in of_tasks]
            chosen = Chosen(named, by_task=len(of_tasks) > 1)
        else:
            chosen = choose(files, path, task)
        if not chosen.files:
            return None
        tasks = {file.task for file in chosen.files}
        lost = [one for one in unreadable if one.task in tasks]
        logs, lost = read_logs(chosen.files, lost, path, category)
        check_whole([log.file for log in logs], path)
        if task is None and not of_tasks:
            lost += [one for one in unreadable if one.task not in tasks]
        return _recorded(logs, lost, chosen, path, category)


def _recorded(
    logs: Sequence[Log], lost: Sequence[Unreadable], chosen: Chosen, path: Path, category: str | None
) -> RecordedScores:
    logs, earlier = newest(logs)
    names, settings = named_by_settings(logs)
    kept, copies = without_copies(logs, names)
    logs, names = [logs[number] for number in kept], [names[number] for number in kept]
    documents = Documents(logs, by_task=chosen.by_task, category=category)
    group = None if chosen.group is None else chosen.group.metrics
    said = Notes(group)
    found = Readings(
        documents,
        judged=any(log.judged for log in logs),
        by_filter=any(len(log.filters) > 1 for log in logs),
        only=group,
        apart=chosen.apart,
    )
    unsure: set[str] = set()
    tasks = {file.task for file in chosen.files}
    for log, name in zip(logs, names, strict=True):
        with as_written_by("lm-eval", log.file.path):
            metrics, missing = Metrics(log), missing_from(log, name)
            found.add(log, name, metrics, missing)
            said.take(log, name, metrics, missing)
        if not missing.whole or any(_is_of(log, one) for one in lost if one.task in tasks):
            unsure.add(name)
    if not found.columns.items:
        why = {
            f"{metric} of {log.file.task}: {told}"
            for log in logs
            for metric, told in Metrics(log).why_unread.items()
        }
        told = "; ".join(few(sorted(why), "are none")) or "it may be --predict_only"
        raise InvalidInputError(
            f"{path} holds samples without a score: no metric is a number per document that is averaged "
            f"({told})"
        )
    models = dict.fromkeys(found.columns.models)
    recorded = found.columns.recorded({model: found.bought(model) for model in models})
    declared = Declared.of(
        recorded.models,
        recorded.items,
        recorded.raters,
        settings=settings,
        complete=[model for model in models if model not in unsure],
        lower_is_better=_directions(found),
        direction_missing=True,
        ranges=_ranges(recorded, found),
        reducers=_reducers(recorded.raters, found),
        digests=documents.digests,
        clusters=documents.clusters,
        cluster=documents.cluster,
        notes=[
            *chosen.notes,
            *few([f"Left out: {one.told}." for one in lost], "logs are left out"),
            *earlier,
            *few(copies, "logs are copies of others"),
            *few(documents.notes, "logs hold other documents under the same ids"),
            *few(documents.asked_twice(), "tasks have documents that ask the same"),
            *said.sentences(),
            *few(list(found.unscored()), "kinds of answers have no score"),
        ],
    )
    bought = recorded.purchases
    if chosen.apart and bought is not None:  # what was paid is of all tasks together
        bought = tuple(replace(each, cost=None) for each in bought)
    return replace(
        recorded,
        purchases=bought,
        categories=None if chosen.apart and category is None else documents.categories(recorded.items),
        texts=documents.texts(recorded.items),
        declared=declared,
        race=_race(logs, names, recorded.raters),
        task=_task(chosen, logs),
        one_measure=found.judged and not chosen.apart,
        one_generation=all(log.kept for log in logs),
        strata=_strata(logs, documents, recorded),
        by_category=group is not None and not chosen.apart and category is None,
    )


def _strata(logs: Sequence[Log], documents: Documents, recorded: RecordedScores) -> Strata | None:
    """By which the documents were drawn; None unless all logs are of such samples, one of each task."""
    found: dict[str, tuple[str, int]] = {}
    sizes: dict[str, tuple[int, ...]] = {}
    for log in logs:
        drawn = ((log.file.block or {}).get("drawn") or {}).get(log.file.task)
        if drawn is None:
            return None
        own = tuple(map(int, drawn["sizes"]))
        if sizes.setdefault(log.file.task, own) != own:
            return None
        for doc, stratum in zip(drawn["doc_id"], drawn["stratum"], strict=True):
            found[documents.name(log, int(doc))] = log.file.task, int(stratum)
    if not all(item in found for item in recorded.items):
        return None
    read = np.asarray(recorded.counts.any(axis=(0, 2)))
    numbers = np.zeros(read.size, dtype=np.int64)
    known: list[int] = []
    for task in sizes:
        here = np.array([found[item][0] == task for item in recorded.items])
        of_item = np.array([found[item][1] for item in recorded.items])[here]
        strata = Strata(of_item, np.array(sizes[task])).collapsed(read[here])
        numbers[here] = strata.of_item + len(known)
        known += strata.sizes.tolist()
    return Strata(numbers, np.array(known))


def _is_of(log: Log, lost: Unreadable) -> bool:
    """Whether a lost log may be of the same model as another; if nothing tells it, one in its folder may."""
    if lost.model is None:
        return log.file.path.parent == lost.path.parent
    return log.file.model == lost.model


def _check_results(path: Path) -> None:
    """Refuse results that stand alone.

    Raises:
        InvalidInputError: they do.
    """
    if path.exists() and (results := results_without_samples(path)) is not None:
        told = f"{results} is results without samples: they have totals, and no score of a document"
        if packed := next(results.parent.glob("samples_*.json*.*"), None):
            raise InvalidInputError(f"{told}. {packed.name} beside it is packed: unpack it")
        raise InvalidInputError(
            f"{told}. Run lm-eval with --log_samples, and give the folder that it writes (it writes none of "
            "a task with / in its name: rename that)"
        )


def _task(chosen: Chosen, logs: Sequence[Log]) -> TaskName | None:
    """Of all logs; None where they are of several."""
    if chosen.group is not None:
        return TaskName(chosen.group.name, chosen.group.version)
    names = {TaskName(log.file.task, log.file.version) for log in logs}
    return names.pop() if len(names) == 1 else None


def _directions(found: Readings) -> dict[str, bool]:
    """Of every rater that has one.

    Raises:
        InvalidInputError: two logs disagree.
    """
    known: dict[str, tuple[bool, SamplesFile]] = {}
    for rater, every in found.metrics.items():
        for metrics in every:
            lower = direction(metrics, rater)
            if lower is None:
                continue
            first, file = known.setdefault(rater, (lower, metrics.log.file))
            if first != lower:
                less, more = (file, metrics.log.file) if first else (metrics.log.file, file)
                raise InvalidInputError(
                    f"two logs disagree on which way {rater!r} is better: less by the results beside "
                    f"{less.path}, more by those beside {more.path}. Correct higher_is_better in one of "
                    "them, or give them one by one"
                )
    return {rater: lower for rater, (lower, _) in known.items()}


def _ranges(recorded: RecordedScores, found: Readings) -> dict[str, tuple[float, float]]:
    ranges = {}
    for number, rater in enumerate(recorded.raters):
        scores = recorded.scores[:, :, number]
        seen = np.unique(scores[~np.isnan(scores)]).tolist()
        known = {score_range(metrics, rater, seen) for metrics in found.metrics[rater]}
        if len(known) == 1 and (own := known.pop()) is not None:
            ranges[rater] = own
    return ranges


def _reducers(raters: Sequence[str], found: Readings) -> dict[str, str]:
    known = {
        rater: {reducer(metrics.log, found.filters[rater]) for metrics in found.metrics[rater]}
        for rater in raters
    }
    named = {rater: sorted(one for one in told if one) for rater, told in known.items()}
    return {rater: " or ".join(told) for rater, told in named.items() if told}


def _race(logs: Sequence[Log], names: Sequence[str], raters: Sequence[str]) -> RaceRecord | None:
    """The verdict of the race or gate that all of these are of; None if they are of none, or of several."""
    last = last_block_of([log.file for log in logs])
    if last is None:
        return None
    models = {log.file.model: name for log, name in zip(logs, names, strict=True)}
    keys = [str(last.get("metric")), str(last.get("metric")).partition(",")[0]]
    score = next((key for key in keys if key in raters), "")
    return RaceRecord.of(last["race"], models, last.get("gate"), score)
