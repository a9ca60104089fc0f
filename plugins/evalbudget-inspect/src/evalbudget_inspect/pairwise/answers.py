"""The answers of finished logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from inspect_ai.log import read_eval_log

from evalbudget.errors import InvalidInputError
from evalbudget.pairwise import Answers, ModelAnswers
from evalbudget_inspect.host.requests import request_of


def read_answers(logs: Sequence[str]) -> Answers:
    """What every log's model answered; of several epochs, the first.

    Args:
        logs: paths of logs, or of folders of them.

    Raises:
        InvalidInputError: a log cannot be read or has no answers, there are fewer than two, or they share no
            item.
    """
    return Answers.of([_answers(path) for path in _files(logs)])


def _files(logs: Sequence[str]) -> list[str]:
    found: list[str] = []
    for log in logs:
        path = Path(log)
        if "://" not in log and not path.exists():
            raise InvalidInputError(
                f"{log} does not exist (looked from {Path.cwd()}); give a log that inspect wrote, or a "
                "folder of logs"
            )
        if "://" not in log and path.is_dir():
            inside = sorted(str(each) for each in path.rglob("*.eval"))
            if not inside:
                raise InvalidInputError(f"{log} holds no .eval log; give the folder of a finished run")
            found += inside
        else:
            found.append(log)
    return list(dict.fromkeys(found))


def _answers(path: str) -> ModelAnswers:
    try:
        log = read_eval_log(path)
    except Exception as ex:  # the host raises whatever its zip and JSON readers raise
        raise InvalidInputError(
            f"{path} is not a readable inspect log ({type(ex).__name__}: {ex}); if the run was killed, "
            "finish it with inspect eval-retry"
        ) from ex
    requests: dict[str, str] = {}
    answers: dict[str, str] = {}
    for sample in sorted(log.samples or [], key=lambda each: each.epoch):
        item = str(sample.id)
        if sample.error is None and sample.output.choices and item not in answers:
            requests[item], answers[item] = request_of(sample), sample.output.completion
    if not answers:
        raise InvalidInputError(
            f"{path} has no answers (status {log.status}); was it run with --no-log-samples, or did every "
            "sample fail?"
        )
    return ModelAnswers(log.eval.model, Path(path).stem, requests, answers)
