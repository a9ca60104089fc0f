"""Answers and judge scores of an audit, read from the logs of its runs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from inspect_ai.event import ModelEvent, SpanBeginEvent
from inspect_ai.log import EvalSample, list_eval_logs, read_eval_log

from evalbudget.audits.store import Answer, AuditStore
from evalbudget.errors import InvalidInputError
from evalbudget.prices import Tariff
from evalbudget_inspect.audits.kept_answers import is_answered
from evalbudget_inspect.audits.money import is_cut_off, is_unpaid
from evalbudget_inspect.host.bill import counted
from evalbudget_inspect.host.how_bought import JUDGE
from evalbudget_inspect.host.log_files import check_log, is_summary
from evalbudget_inspect.host.private import is_cancellation_message
from evalbudget_inspect.host.requests import request_of
from evalbudget_inspect.host.score_values import score_to_float
from evalbudget_inspect.host.scoring import LABEL
from evalbudget_inspect.repeats.task import driving_score

TAG = "evalbudget_audit"
"""Key in a log's metadata: id of the store whose items it answers."""
ATTEMPT = "attempt"
"""What a label's metadata tells: the attempt of the store that it came of."""
USAGE = "usage"
"""What a label's metadata tells: tokens and costs of each model."""
ATTEMPTS = 2
"""Runs in which an item may fail before it is taken as it is."""


@dataclass(frozen=True, slots=True)
class Found:
    """What the logs say of one model and item.

    Attributes:
        answer: what a human reads.
        score: the judge's; nan if it gave none.
        failures: runs in which there was no answer or no score.
        log: that has it.
        attempts: of a scorer that labels, as far as the log has what came of them.
        kept: what the log has of an answer that has no score; None of one that is to be bought again.
        judging: what the calls of its scorers cost, in units of the budget; None where nobody asked.
    """

    answer: Answer
    score: float
    failures: int
    log: str
    attempts: frozenset[int] = frozenset()
    kept: EvalSample | None = None
    judging: float | None = None

    def settled(self, judged: bool) -> bool:
        """Whether it need not be run again."""
        if judged and not math.isnan(self.score):
            return True
        return (self.failures == 0 and self.kept is None) or self.failures >= ATTEMPTS


def read_answers(
    folder: str, store: AuditStore, judge: str | None, tariff: Tariff | None = None
) -> dict[tuple[str, str], Found]:
    """Everything that logs in a folder answer for an audit, by model and sample id.

    Logs of runs that were killed count as far as they go. An answer that the budget cut off is none, and one
    whose judge it did not pay for is kept.

    Args:
        folder: of the logs.
        store: of the audit.
        judge: its name, where a log does not say it.
        tariff: what calls cost, where that is wanted.

    Raises:
        InvalidInputError: a log cannot be read, or its scores are no numbers.
    """
    found: dict[tuple[str, str], Found] = {}
    for path in _logs(folder):
        check_log(path, is_summary)
        header = read_eval_log(path, header_only=True)
        told = header.eval.metadata or {}
        if told.get(TAG) != store.id:
            continue
        check_log(path)
        log = read_eval_log(path)
        names = [scorer.name for scorer in log.eval.scorers or []]
        for sample in log.samples or []:
            cut_off = is_cancellation_message(sample.error.message if sample.error else None)
            cut_off = cut_off or is_unpaid(sample)
            answered = log.eval.sandbox is None and is_answered(sample)
            if cut_off and (is_cut_off(sample) or not answered):
                continue
            key = (log.eval.model, str(sample.id))
            earlier = found.get(key)
            if earlier is None or earlier.failures or earlier.kept is not None:
                before = 0 if earlier is None else earlier.failures
                one = _read(sample, names, told.get(JUDGE, judge), before, path, answered=answered)
                if tariff is not None and not math.isnan(one.score):
                    one = replace(one, judging=_judging(sample, tariff))
                found[key] = replace(one, failures=before) if cut_off else one
    return found


def _logs(folder: str) -> Iterator[str]:
    if "://" not in folder and not Path(folder).is_dir():
        return
    for info in list_eval_logs(folder, descending=False):
        yield info.name


def _read(
    sample: EvalSample, names: list[str], judge: str | None, failures: int, log: str, *, answered: bool
) -> Found:
    response = (
        sample.output.completion
        if answered or sample.error is None
        else f"(no answer: {sample.error.message})"
    )
    value, reason = math.nan, ""
    if names and sample.scores:
        name, key = driving_score(judge, names)
        score = sample.scores.get(name)
        if score is not None:
            value, reason = score_to_float(score, name, key, "--judge", strict=True), score.explanation or ""
    unscored = bool(names) and math.isnan(value)
    failed = sample.error is not None or unscored
    answer = Answer(request_of(sample), response, reason)
    kept = sample if failed and answered else None
    return Found(answer, value, failures + failed, log, _attempts(sample), kept)


def _judging(sample: EvalSample, tariff: Tariff) -> float:
    """What scorers' calls cost, as far as their replies say; those from a cache cost nothing."""
    cost, scoring = 0.0, False
    for event in sample.events:
        scoring = scoring or (isinstance(event, SpanBeginEvent) and event.name == "scorers")
        if scoring and isinstance(event, ModelEvent) and event.output.usage and event.cache != "read":
            cost += tariff.cost(event.model, counted(event.output.usage, event.working_time or 0.0))
    return cost


def _attempts(sample: EvalSample) -> frozenset[int]:
    entries = [(score.metadata or {}).get(LABEL) or {} for score in (sample.scores or {}).values()]
    return frozenset(entry[ATTEMPT] for entry in entries if USAGE in entry)


def require_bounds(store: AuditStore, found: dict[tuple[str, str], Found]) -> None:
    """Refuse judge scores that are not on the scale of the labels.

    Raises:
        InvalidInputError: one is outside.
    """
    scale = store.design.scale
    for (model, item), each in found.items():
        if not (math.isnan(each.score) or scale.low <= each.score <= scale.high):
            raise InvalidInputError(
                f"the judge gave {model}'s answer to {item!r} {each.score:g}, and the audit's scale is "
                f"{scale}; nothing more was asked. Begin an audit with the judge's scale, for example "
                f"--score-range 1..10; if it was a slip, correct that score in {each.log} "
                "(inspect_ai.log.edit_score)"
            )
