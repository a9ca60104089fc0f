"""Logs that tell the same settings, and still asked something else, or in other words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence

from evalbudget.backtest import shows_same
from evalbudget_lm_eval.logs.log import Log

_Asked = dict[str, set[str]]
_SHOWN = 12
"""Characters of a digest."""


def question_labels(logs: Sequence[Log], names: Sequence[str]) -> list[str]:
    """A label of each log's documents, where logs of the same name have others under the same ids.

    Documents in another order are the same, and so are those in other words with the same right answers.
    """
    return _labels(logs, names, _questions, _same_questions)


def prompt_labels(logs: Sequence[Log], names: Sequence[str]) -> list[str]:
    """A label of each log's prompts, where logs of the same name have others for the same documents."""
    return _labels(logs, names, _prompts, _agree_where_shared)


def answer_labels(logs: Sequence[Log], names: Sequence[str]) -> list[str]:
    """A label of each log's right answers, where logs of the same name have others for the same requests."""
    return _labels(logs, names, _right_answers, _agree_where_shared)


def _labels(
    logs: Sequence[Log],
    names: Sequence[str],
    asked: Callable[[Log], _Asked],
    agree: Callable[[_Asked, _Asked], bool],
) -> list[str]:
    """Empty where all logs of a name and task agree."""
    kinds: dict[tuple[str, str], list[tuple[_Asked, list[int]]]] = {}
    for number, (log, name) in enumerate(zip(logs, names, strict=True)):
        own = asked(log)
        known = kinds.setdefault((name, log.file.task), [])
        for seen, members in known:
            if agree(seen, own):
                for key, told in own.items():
                    seen.setdefault(key, set()).update(told)
                members.append(number)
                break
        else:
            known.append((own, [number]))
    labels = [""] * len(logs)
    for known in kinds.values():
        for seen, members in known if len(known) > 1 else ():
            less = {key: sorted({_less_sent(value) for value in values}) for key, values in seen.items()}
            text = "".join(f"{key} {values}" for key, values in sorted(less.items()))
            for number in members:
                labels[number] = hashlib.sha256(text.encode()).hexdigest()[:_SHOWN]
    return labels


def _questions(log: Log) -> _Asked:
    return {str(record["doc_id"]): {record["question"]} for record in log.records if record["question"]}


def _same_questions(known: Mapping[str, set[str]], own: Mapping[str, set[str]]) -> bool:
    texts = {_text(digest) for digests in known.values() for digest in digests}
    asked = [(document, digest) for document, digests in own.items() for digest in digests]
    changed = [
        (document, digest)
        for document, digest in asked
        if document in known and _text(digest) not in texts and not _sends_same(digest, known[document])
    ]
    return not changed or (
        all(_target(digest) in map(_target, known[document]) for document, digest in changed)
        and shows_same((digest for _, digest in changed), (digest for _, digest in asked))
    )


def _prompts(log: Log) -> _Asked:
    found: _Asked = {}
    for record in log.records:
        if record.get("prompt_hash"):
            question = _text(record["question"]) or str(record["doc_id"])
            found.setdefault(question, set()).add(str(record["prompt_hash"]))
    return found


def _right_answers(log: Log) -> _Asked:
    found: _Asked = {}
    for record in log.records:
        if sent := record["question"].split("-")[2:]:
            found.setdefault(sent[0], set()).add(_target(record["question"]))
    return found


def _agree_where_shared(known: Mapping[str, set[str]], own: Mapping[str, set[str]]) -> bool:
    # a document may stand twice in the data, with other examples before it
    return all(
        question not in known or not known[question].isdisjoint(told) for question, told in own.items()
    )


def _text(digest: str) -> str:
    return digest.partition("-")[0]


def _target(digest: str) -> str:
    return "".join(digest.split("-")[1:2])


def _less_sent(digest: str) -> str:
    return "-".join(digest.split("-")[:2])


def _sends_same(digest: str, known: Iterable[str]) -> bool:
    """Whether the requests are the same as some; the right answer may have been edited since."""
    sent = digest.split("-")[2:]
    return bool(sent) and any(each.split("-")[2:] == sent for each in known)
