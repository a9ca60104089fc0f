"""Logs of one task, each with what is known of it before its scores are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalbudget.backtest import ONE_BY_ONE, few, match_questions, names_by_settings
from evalbudget_inspect.host.questions import digests_of
from evalbudget_inspect.reading.counted import without_copies
from evalbudget_inspect.reading.logs import Log, several
from evalbudget_inspect.reading.planned import Planned, plans_of
from evalbudget_inspect.reading.races import arm_of
from evalbudget_inspect.reading.scores import Turns, turns_in
from evalbudget_inspect.reading.settings import settings_of


@dataclass(frozen=True, slots=True)
class Part:
    """One log.

    Attributes:
        log: with the samples that count.
        model: name among the recorded scores: the model and, where several differ, its settings.
        settings: what it was evaluated with.
        turns: of judges; None where they took none.
        plan: what its header says was to be run.
        names: of each sample's id, the name of its question among the recorded scores.
        digests: of each sample's id, the digest of its question.
    """

    log: Log
    model: str
    settings: Mapping[str, str]
    turns: Turns | None
    plan: Planned
    names: Mapping[str, str]
    digests: Mapping[str, str]

    def item(self, id_: int | str) -> str:
        """The name of a sample's question; of one that no sample of the log asks, its id."""
        return self.names.get(str(id_), str(id_))


def parts_of(logs: Sequence[Log], run_of: Mapping[str, str]) -> tuple[list[Part], list[str]]:
    """Every log with what is known of it, and notes.

    Args:
        logs: of one task, oldest first, with the samples that count.
        run_of: by the id of a task, of the processes that shared a budget, the name of their run.
    """
    headers = [log.header for log in logs]
    turns = [turns_in(log.header, log.samples) for log in logs]
    settings = settings_of(headers, [() if own is None else own.judges for own in turns])
    # a retry, and a process that went on with another's budget, evaluate what the first one did
    runs = [run_of.get(header.eval.task_id, header.eval.task_id) for header in headers]
    of_run = dict(zip(runs, settings, strict=True))
    settings = [of_run[run] for run in runs]
    models = names_by_settings([arm_of(header) for header in headers], settings)
    logs, notes = without_copies(logs, models)
    digests = [digests_of(log.samples) for log in logs]
    asked = [(log.name, own) for log, own in zip(logs, digests, strict=True)]
    matched = match_questions(asked, remedy=ONE_BY_ONE)
    plans = plans_of(logs, runs, models)
    notes += few(matched.notes, "logs hold other questions under the same ids")
    notes += few([note for plan in plans for note in plan.notes], "logs are not whole")
    notes += few(_limits(logs), "logs are of a part of their dataset")
    columns = zip(logs, models, settings, turns, plans, matched.names, digests, strict=True)
    return [Part(*known) for known in columns], notes


def _limits(logs: Sequence[Log]) -> list[str]:
    """Notes on datasets of which a part was asked, as ``--limit`` and ``--sample-id`` say."""
    found = []
    for log in logs:
        spec = log.header.eval
        asked, every = len(spec.dataset.sample_ids or ()), spec.dataset.samples or 0
        chosen = spec.config.limit is not None or spec.config.sample_id is not None
        if chosen and 0 < asked < every:
            of = f"{asked:,} of the {several(every, 'sample')} of the dataset"
            found.append(f"{log.name} ({spec.model}) is of {of}.")
    return found
