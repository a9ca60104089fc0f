"""The answers of finished runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget.untrusted import parsed_json
from evalbudget_lm_eval.host.logfiles import SamplesFile, of_newest_runs, samples_files
from evalbudget_pairwise import Answers, ModelAnswers


def read_answers(logs: Sequence[str]) -> Answers:
    """What every run's model answered; of several responses to a document, the first.

    Args:
        logs: folders with ``samples_*.jsonl``, or such files. Of several runs of a model and task in one of
            them, the last counts.

    Raises:
        InvalidInputError: one cannot be read or has no answers, there are fewer than two models, or they
            share no document.
    """
    files = {log: _newest(log) for log in dict.fromkeys(logs)}
    several = len({file.task for each in files.values() for file in each}) > 1
    found: dict[tuple[str, str], ModelAnswers] = {}
    for log, each in files.items():
        for file in each:
            key = log, file.model
            if key not in found:
                found[key] = ModelAnswers(file.model, str(Path(log).resolve()), {}, {})
            _read(file, found[key], several=several)
    return Answers.of(list(found.values()))


def _newest(log: str) -> list[SamplesFile]:
    """Of every model and task in a log."""
    if not Path(log).exists():
        raise InvalidInputError(
            f"{log} does not exist (looked from {Path.cwd()}); give what lm-eval wrote with --log_samples, a "
            "folder or a samples_*.jsonl"
        )
    files = samples_files(Path(log))
    if not files:
        raise InvalidInputError(
            f"{log} has no samples_*.jsonl of lm-eval; run it with --log_samples --output_path, and name "
            "that folder"
        )
    return of_newest_runs(files, Path(log))


def _read(file: SamplesFile, into: ModelAnswers, *, several: bool) -> None:
    """Take in what the file has, items named by its task if there are several."""
    for record in file.records(responses=True, prompts=True):
        item = f"{file.task}/{record['doc_id']}" if several else str(record["doc_id"])
        if item not in into.answers:
            into.requests[item], into.answers[item] = _request(record), _response(record, file)
            if isinstance(record.get("doc_hash"), str):
                into.hashes[item] = record["doc_hash"]


def _response(record: Mapping[str, Any], file: SamplesFile) -> str:
    responses = record.get("resps")
    first = responses[0] if isinstance(responses, list) and responses else None
    text = first[0] if isinstance(first, list) and first else first
    if not isinstance(text, str):
        raise InvalidInputError(
            f"{file.path}: what the model said to document {record['doc_id']} is no text ({text!r}), so "
            "there is nothing to compare; give runs of a task whose answers are generated"
        )
    return text


def _request(record: Mapping[str, Any]) -> str:
    """What the model was told, with the contents of chat messages one below the other."""
    arguments = record.get("arguments")
    first: Any = arguments
    for _ in range(2):  # gen_args_0, arg_0; or plain lists
        if isinstance(first, Mapping):
            first = next(iter(first.values()), "")
        elif isinstance(first, list | tuple):
            first = first[0] if first else ""
    if isinstance(first, list | tuple) and len(first) == 1:  # a chat: its messages as JSON
        first = _messages(first[0]) or first
    if isinstance(first, list | tuple):  # of messages
        first = "\n\n".join(str(m.get("content", "")) if isinstance(m, Mapping) else str(m) for m in first)
    return str(first)


def _messages(chat: object) -> list[Any] | None:
    try:
        told = parsed_json(chat) if isinstance(chat, str) else None
    except ValueError:
        return None
    return told if isinstance(told, list) and all(isinstance(m, Mapping) for m in told) else None
