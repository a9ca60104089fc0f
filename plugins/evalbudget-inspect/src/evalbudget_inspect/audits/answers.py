"""Answers and judge scores of an audit, read from the logs of its runs; what has no score is scored again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal
from urllib.parse import urlparse
from urllib.request import url2pathname

from inspect_ai import Task
from inspect_ai.event import ErrorEvent, ModelEvent, SandboxEvent, SpanBeginEvent
from inspect_ai.log import EvalLog, EvalSample, list_eval_logs, read_eval_log, write_eval_log
from inspect_ai.model import ModelUsage
from inspect_ai.scorer import Score, Scorer, Target
from inspect_ai.solver import Generate, Solver, TaskState, solver

from evalbudget.audits.store import Answer, AuditStore, Reply
from evalbudget.errors import InvalidInputError
from evalbudget.prices import Tariff
from evalbudget_inspect.audits.money import is_cut_off, is_unpaid
from evalbudget_inspect.host.bill import counted
from evalbudget_inspect.host.how_bought import JUDGE
from evalbudget_inspect.host.log_files import check_log, is_summary
from evalbudget_inspect.host.private import is_cancellation_message
from evalbudget_inspect.host.requests import request_of
from evalbudget_inspect.host.score_values import score_to_float
from evalbudget_inspect.host.scoring import LABEL, in_place_of
from evalbudget_inspect.repeats.kept_generation import Kept
from evalbudget_inspect.repeats.task import driving_score, solvers_of

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


def is_answered(sample: EvalSample) -> bool:
    """Whether a log's sample has all that scorers need, whatever became of its scores.

    Not if scorers may look into a sandbox, which is gone, and not of multiple choice: the log does not say
    how the solver shuffled and marked the choices.
    """
    if sample.sandbox is not None or sample.choices:
        return False
    scoring = False
    for event in sample.events:
        if isinstance(event, SandboxEvent):
            return False
        if isinstance(event, ErrorEvent) and not scoring:
            return False  # with --score-on-error the host scores what broke off, too
        scoring = scoring or (isinstance(event, SpanBeginEvent) and event.name == "scorers")
    return sample.error is None or scoring


def keep_answers(task: Task, kept: Mapping[str, EvalSample], judge: str, names: Sequence[str]) -> None:
    """Have a task's solvers skip what is answered, and its scorers what is scored.

    Args:
        task: is changed.
        kept: samples of earlier logs, by id; each :func:`is_answered`.
        judge: the scorer that is asked again.
        names: of the task's scorers, in their order.
    """
    if not kept:
        return
    task.setup = [_restore(kept), *solvers_of(task.setup)]
    task.scorer = [
        scorer if name == judge else _as_scored(scorer, name, kept)
        for scorer, name in zip(task.scorer or [], names, strict=True)
    ]


@solver(name="evalbudget_inspect/kept_answer")
def _restore(kept: Mapping[str, EvalSample]) -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        sample = kept.get(str(state.sample_id))
        if sample is not None:
            Kept.logged(sample).restore(state)
        return state

    return solve


def _as_scored(scorer: Scorer, name: str, kept: Mapping[str, EvalSample]) -> Scorer:
    async def score(state: TaskState, target: Target) -> Score | None:
        sample = kept.get(str(state.sample_id))
        earlier = None if sample is None else (sample.scores or {}).get(name)
        return await scorer(state, target) if earlier is None else earlier

    return in_place_of(scorer, score)


def marked(score: Score, attempt: int) -> Score:
    """The score with the attempt of the store that it came of."""
    return score.model_copy(update={"metadata": {**(score.metadata or {}), LABEL: {ATTEMPT: attempt}}})


def keep_all(store: AuditStore, found: Mapping[tuple[str, str], Found]) -> None:
    """Put in the logs what the store alone has, because whoever asked for it was killed."""
    draws = {draw.index: draw for draw in store.draws.all()}
    behind = set()
    for attempt in store.attempts.all():
        draw = draws[attempt.draw]
        each = found.get((store.design.models[draw.model], store.design.items[draw.item]))
        if attempt.reply is not None and each is not None and attempt.number not in each.attempts:
            behind.add(each.log)
    for path in sorted(behind):
        keep_in_log(store, found, path, read_eval_log(path))


def keep_in_log(store: AuditStore, found: Mapping[tuple[str, str], Found], path: str, log: EvalLog) -> None:
    """Put in one log what a scorer said of the answers that are taken from it.

    Args:
        store: the audit.
        found: where its answers are.
        path: of the log.
        log: its content; it is changed and written back.
    """
    samples = {str(sample.id): sample for sample in log.samples or []}
    draws = {draw.index: draw for draw in store.draws.all()}
    changed = False
    for attempt in store.attempts.all():
        draw = draws[attempt.draw]
        key = store.design.models[draw.model], store.design.items[draw.item]
        if attempt.reply is None or key not in found or found[key].log != path:
            continue
        sample = samples[key[1]]
        if _add(sample, attempt.number, attempt.by.removeprefix("scorer "), attempt.reply):
            for model, used in attempt.reply.usage.items():
                usage = ModelUsage.model_validate(used)
                for total in (sample.model_usage, log.stats.model_usage):
                    total[model] = total.get(model, ModelUsage()) + usage
            changed = True
    if changed:
        _write(log, path)


def _add(sample: EvalSample, attempt: int, name: str, reply: Reply) -> bool:
    scores = sample.scores = dict(sample.scores or {})
    for known, score in scores.items():
        entry = (score.metadata or {}).get(LABEL) or {}
        if entry.get(ATTEMPT) == attempt:
            if USAGE in entry:
                return False
            name = known
            break
    else:
        name = next(n for n in (name, *(f"{name}{i}" for i in range(1, len(scores) + 2))) if n not in scores)
        score = Score(
            value=math.nan if reply.score is None else reply.score,
            answer=reply.answer or None,
            explanation=reply.explanation or reply.failure or None,
        )
    entry = {ATTEMPT: attempt, USAGE: {model: dict(used) for model, used in reply.usage.items()}}
    scores[name] = score.model_copy(update={"metadata": {**(score.metadata or {}), LABEL: entry}})
    return True


def _write(log: EvalLog, path: str) -> None:
    """In place of the old one, which is whole until the new one is."""
    format_: Literal["json", "eval"] = "json" if path.endswith(".json") else "eval"
    url = urlparse(path)
    if "://" in path and url.scheme != "file":
        write_eval_log(log, path, format=format_)  # stores of objects replace them whole
        return
    local = Path(url2pathname(url.path) if url.scheme == "file" else path)
    begun = local.with_name(f".{local.name}.part")  # no name of a log: nobody lists it
    try:
        write_eval_log(log, begun, format=format_)
        begun.replace(local)
    finally:
        begun.unlink(missing_ok=True)
