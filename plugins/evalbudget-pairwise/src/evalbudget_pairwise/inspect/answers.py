"""The answers of finished logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inspect_ai.log import EvalLog, EvalSample, read_eval_log

from evalbudget.errors import InvalidInputError
from evalbudget.shown import shown_logger
from evalbudget_inspect.host.log_files import check_log, is_summary
from evalbudget_inspect.host.requests import request_of
from evalbudget_pairwise import Answers, ModelAnswers

COMPARING = "evalbudget_pairwise/comparing"
"""The solver of comparisons, whose logs hold no answers to compare."""

logger = shown_logger(__name__)


class _NoAnswersError(InvalidInputError):
    """A log that is left out of a folder, and refused by itself."""


def read_answers(logs: Sequence[str]) -> Answers:
    """What every log's model answered; of several epochs, the first.

    Of a folder, logs of comparisons are left out, so are those without answers, and of a run that was retried
    the newest counts.

    Args:
        logs: paths of logs, or of folders of them.

    Raises:
        InvalidInputError: a log cannot be read or has no answers, there are fewer than two, or they share no
            item.
    """
    found: dict[str, ModelAnswers] = {}
    for log in logs:
        path = Path(log)
        if "://" in log:
            found[log] = _answers(log, _read(log))
        elif not path.exists():
            raise InvalidInputError(
                f"{log} does not exist (looked from {Path.cwd()}); give a log that inspect wrote, or a "
                "folder of logs"
            )
        elif path.is_dir():
            found |= _of_folder(path)
        else:
            found[str(path.resolve())] = _answers(str(path.resolve()), _read(log))
    return Answers.of(list(found.values()))


def _of_folder(folder: Path) -> dict[str, ModelAnswers]:
    inside = sorted(str(each.resolve()) for each in folder.rglob("*.eval"))
    if not inside:
        raise InvalidInputError(f"{folder} holds no .eval log; give the folder of a finished run")
    newest: dict[str, tuple[str, ModelAnswers]] = {}
    for path in inside:
        try:
            header = _read(path, header_only=True)
            if any(step.solver.endswith(COMPARING) for step in header.plan.steps):
                continue
            answers = _answers(path, _read(path))
        except _NoAnswersError as ex:
            logger.warning("left out: %s", ex)
            continue
        created, _ = newest.get(header.eval.task_id, ("", None))
        if header.eval.created >= created:
            newest[header.eval.task_id] = header.eval.created, answers
    return {answers.source: answers for _, answers in newest.values()}


def _read(path: str, *, header_only: bool = False) -> EvalLog:
    try:
        check_log(path, is_summary if header_only else None)
        return read_eval_log(path, header_only=header_only)
    except InvalidInputError as ex:
        raise _NoAnswersError(str(ex)) from None
    except Exception as ex:  # the host raises whatever its zip and JSON readers raise
        raise _NoAnswersError(
            f"{path} is not a readable inspect log ({type(ex).__name__}: {ex}); if the run was killed, "
            "finish it with inspect eval-retry"
        ) from ex


def _answers(path: str, log: EvalLog) -> ModelAnswers:
    requests: dict[str, str] = {}
    answers: dict[str, str] = {}
    for sample in sorted(log.samples or [], key=lambda each: each.epoch):
        item = str(sample.id)
        if sample.error is None and sample.output.choices and item not in answers:
            unread = _unreadable_parts(sample)
            if unread:
                raise InvalidInputError(
                    f"{path}: item {item!r} asks with {' and '.join(unread)}, which the judge would not be "
                    "shown; give logs of a task that asks with text alone"
                )
            requests[item], answers[item] = request_of(sample), sample.output.completion
    if not answers:
        raise _NoAnswersError(
            f"{path} has no answers (status {log.status}); was it run with --no-log-samples, or did every "
            "sample fail?"
        )
    return ModelAnswers(log.eval.model, path, requests, answers)


def _unreadable_parts(sample: EvalSample) -> list[str]:
    """Kinds of what was asked that ``request_of`` has no text for: image, audio, document and others."""
    messages = [] if isinstance(sample.input, str) else sample.input
    parts = [part for message in messages if not isinstance(message.content, str) for part in message.content]
    return sorted({part.type for part in parts} - {"text", "reasoning"})
