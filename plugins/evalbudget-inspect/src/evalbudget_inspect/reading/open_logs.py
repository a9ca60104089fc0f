"""Logs of the host as recorded scores: what was paid for once can be replayed for nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from evalbudget.backtest import Declared, RecordedScores, TaskName, as_written_by, asked_twice, few
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget_inspect.host.questions import is_told, text_of
from evalbudget_inspect.reading.counted import count_once
from evalbudget_inspect.reading.declared import (
    another_quantity,
    changed_since,
    clusters_of,
    is_one_measure,
    labels_without_sample,
    lower_of,
    ranges_of,
    reducers_of,
    sounds_lower,
    strata_of,
)
from evalbudget_inspect.reading.logs import Log, Wanted, read_logs, several
from evalbudget_inspect.reading.parts import Part, parts_of
from evalbudget_inspect.reading.races import record_of, task_of
from evalbudget_inspect.reading.readings import read_readings
from evalbudget_inspect.reading.scores import Series
from evalbudget_inspect.reading.shared_runs import SharedRuns
from evalbudget_inspect.reading.totals import contradicted, metrics_of_the_task

_NAMED = 3
_COMPARING = "evalbudget_pairwise/comparing"  # the solver of pairwise judges, whose package may not be here


def open_scores(
    path: Path, *, task: str | None = None, wanted: Wanted | None = None, category: str | None = None
) -> RecordedScores | None:
    """An inspect log, or a folder of them; None if the path is neither.

    Models are the evaluated models, each as often as what was evaluated differs between logs; raters are the
    scorers, or the judges where these took turns; repeats are the epochs, and logs of the same model and
    settings add up. A sample counts once, however many logs have it. An answer that should have a score and
    has none is among ``failed``; what was left out, and why, is in the notes of ``declared``. Which epochs
    may count for a mean is told by ``purchases`` and ``epochs``. A reading costs what its whole sample did
    (``costs``): by the bill beside the log, or by what providers said, or by its usage at the host's prices.
    ``texts`` are the beginnings of the samples' inputs. ``race`` is what a race of ours proved.

    Args:
        path: of the log or the folder.
        task: of several, the one to read; its name, with or without that of its package.
        wanted: told each log's header; those it does not want are left out, as are unreadable ones. The
            result is None if none is left.
        category: field of the samples' metadata that says what they belong to; None for none.

    Raises:
        InvalidInputError: no log can be read, logs of several tasks, or no score at all.
        UnknownNameError: no log is of this task.
    """
    logs, notes = read_logs(path, wanted)
    if not logs:
        return None
    with as_written_by("inspect", path):
        logs, of_comparisons = _without_comparisons(path, logs)
        logs = _of_task(path, logs, task)
        shared = SharedRuns.of([log.header for log in logs], path)
        logs, more = count_once(logs)
        parts, of_parts = parts_of(shared.counted(logs), shared.run_of)
        return _read(path, parts, shared, [*notes, *of_comparisons, *more, *of_parts], category)


def _without_comparisons(path: Path, logs: Sequence[Log]) -> tuple[list[Log], list[str]]:
    """Those of answers, and a note on those in which a judge compared the answers of others.

    Raises:
        InvalidInputError: the others, if there are any, have no score, which nobody needs to compare them.
    """
    answers = [log for log in logs if not _is_of_comparisons(log)]
    if len(answers) == len(logs):
        return answers, []
    if not any(sample.scores for log in answers for sample in log.samples):
        raise InvalidInputError(
            f"{path} holds comparisons of answers by a judge, and no scores; the command that bought them, "
            "evalbudget inspect pairwise, shows again what they prove, for 0 calls"
        )
    told = several(len(logs) - len(answers), "log")
    return answers, [f"{told} of comparisons of answers by a judge (evalbudget inspect pairwise): left out."]


def _is_of_comparisons(log: Log) -> bool:
    return any(step.solver.endswith(_COMPARING) for step in log.header.plan.steps)


def _of_task(path: Path, logs: Sequence[Log], task: str | None) -> list[Log]:
    """The logs of the task that is asked for, or of the only one."""
    tasks = sorted({task_of(log.header) for log in logs})
    if task is not None:
        found = [log for log in logs if task in _names(task_of(log.header), log.header.eval.task)]
        if not found:
            raise UnknownNameError(f"task in {path}:", task, tasks)
        return found
    if len(tasks) > 1:
        raise InvalidInputError(
            f"{path} holds logs of {len(tasks)} tasks ({', '.join(tasks)}), whose items are not "
            f"comparable; name one of them, for example --task {tasks[0]}"
        )
    return list(logs)


def _names(*tasks: str) -> set[str]:
    return {name for task in tasks for name in (task, task.rpartition("/")[2])}


def _read(
    path: Path, parts: Sequence[Part], shared: SharedRuns, notes: Sequence[str], category: str | None
) -> RecordedScores:
    series = Series.of([part.log for part in parts])
    columns, purchases, missing = read_readings(parts, series, shared)
    if not columns.scores or (series.left_out and not np.isfinite(columns.scores).any()):
        # what is none of its numbers is no answer without a score
        why = [*series.left_out, *([] if series.left_out else missing), *notes][:_NAMED]
        raise InvalidInputError(" ".join([f"{path} holds no numeric score{_remedy(parts, series)}", *why]))
    recorded = columns.recorded(purchases)
    headers, models = [part.log.header for part in parts], [part.model for part in parts]
    race, of_race = record_of(headers, models)
    wrong = few(list(contradicted(parts)), "totals differ from the samples")
    wrong += few(list(metrics_of_the_task(parts)), "results are of the tasks' own metrics")
    edited = few(list(changed_since(parts)), "runs went on with a task that had changed")
    texts, labels = _texts(parts), _categories(parts, category)
    declared = _declared(recorded, parts, series, [*notes, *missing, *wrong, *edited, *of_race], labels)
    tasks = {(task_of(h).rpartition("/")[2], str(h.eval.task_version)) for h in headers}
    return replace(
        recorded,
        one_generation=all(part.turns is not None and part.turns.kept for part in parts),
        one_measure=is_one_measure(parts, recorded.raters),
        task=TaskName(*tasks.pop()) if len(tasks) == 1 else None,
        categories=tuple(labels[item] for item in recorded.items) if labels else None,
        texts=tuple(texts.get(item, "") for item in recorded.items),
        declared=declared,
        race=race,
        strata=strata_of(parts, recorded.items),
    )


def _remedy(parts: Sequence[Part], series: Series) -> str:
    """What gives logs scores, after a clause that says that they have none; ends a sentence."""
    samples = [sample for part in parts for sample in part.log.samples]
    if any(part.log.header.eval.config.log_samples is False for part in parts):
        return "; run the eval without --no-log-samples."
    if series.others:
        return "; score it by a scorer of numbers, or of dicts of them: inspect score LOG --scorer NAME."
    if any(sample.error is None and not sample.scores for sample in samples):
        return "; was the eval run with --no-score? Then score it: inspect score LOG."
    return "."


def _declared(
    recorded: RecordedScores,
    parts: Sequence[Part],
    series: Series,
    notes: Sequence[str],
    labels: Mapping[str, str],
) -> Declared:
    scored = {rater: rater for rater in recorded.raters}
    scored |= {judge: p.turns.series for p in parts if p.turns is not None for judge in p.turns.judges}
    ranges, reducers = ranges_of(parts, series.numbers), reducers_of(parts, list(series.numbers))
    clusters, lower = clusters_of(parts, list(series.numbers)), lower_of(parts)
    several = recorded.counts.max(initial=0) > 1  # of one epoch every reducer says the same
    told = {p.item(s.id): p.digests[str(s.id)] for p in parts for s in p.log.samples if is_told(s)}
    twice = asked_twice(told, labels or clusters.labels)
    more = [*clusters.notes, *twice, *(another_quantity(reducers) if several else ())]
    return Declared.of(
        recorded.models,
        recorded.items,
        recorded.raters,
        settings={part.model: part.settings for part in parts},
        complete={p.model for p in parts} - {p.model for p in parts if not p.plan.whole},
        direction_missing=sounds_lower(parts, list(series.numbers)),
        lower_is_better={rater: True for rater, own in scored.items() if own in lower},
        ranges={rater: ranges[own] for rater, own in scored.items() if own in ranges},
        reducers={rater: reducers[own] for rater, own in scored.items() if own in reducers},
        digests={part.item(id_): digest for part in parts for id_, digest in part.digests.items()},
        clusters=clusters.labels,
        cluster=clusters.cluster,
        unclustered=[r for r, own in scored.items() if own not in clusters.series],
        notes=[*notes, *series.left_out, *more],
    )


def _texts(parts: Sequence[Part]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for part in parts:
        for sample in part.log.samples:
            if (item := part.item(sample.id)) not in texts:
                texts[item] = text_of(sample)
    return texts


def _categories(parts: Sequence[Part], category: str | None) -> Mapping[str, str]:
    """Of items, by a field of their samples' metadata; of none where none is asked for.

    Raises:
        InvalidInputError: a sample lacks it.
    """
    labels: dict[str, str] = {}
    if category is None:
        return labels
    for part in parts:
        lacking = dict.fromkeys(str(s.id) for s in part.log.samples if s.metadata.get(category) in (None, ""))
        if lacking:
            named = ", ".join(map(repr, list(lacking)[:_NAMED])) + ", ..." * (len(lacking) > _NAMED)
            raise InvalidInputError(
                f"{part.log.file}: no {category!r} in the metadata of {several(len(lacking), 'item')} "
                f"({named}); give the name of a field that all samples have, or leave --cluster (in Python: "
                "category) out"
            )
        labels |= {part.item(s.id): str(s.metadata[category]) for s in part.log.samples}
    return {**labels_without_sample(parts, category), **labels}
