"""What people read of an answer, and what its judge gave."""

from __future__ import annotations

import json
import math
from typing import Any

from evalbudget.audits.store import Answer, Scale
from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.host.answers import Answered
from evalbudget_lm_eval.host.private import apply_template


def refuse_unreadable(name: str, task: Any) -> None:
    """Refuse a task whose answers are no single texts.

    Raises:
        InvalidInputError: people would have nothing to read, or something else than what was scored.
    """
    if task.OUTPUT_TYPE != "generate_until":
        raise InvalidInputError(
            f"task {name!r} is of type {task.OUTPUT_TYPE}: models say nothing that people could label; "
            "audit a task of type generate_until"
        )
    repeats = getattr(task.config, "repeats", 1) or 1
    if repeats > 1:
        raise InvalidInputError(
            f"task {name!r} has repeats: {repeats}, so that a score is of {repeats} responses, and people "
            "would label one of them; audit it with repeats: 1"
        )


def readable(task: Any, answer: Answered) -> Answer:
    """What a person who labels reads: the document's prompt, and what the model said to it."""
    return Answer(prompt_of(task, answer.doc_id), response_of(answer))


def response_of(answer: Answered) -> str:
    """What the model said, before any filter."""
    said = answer.records[0]["resps"]
    while isinstance(said, list | tuple):
        said = said[0] if said else ""
    return str(said)


def prompt_of(task: Any, document: int) -> str:
    """A document's own prompt: without examples and chat template, which differ from model to model.

    Args:
        task: the host's object.
        document: id.
    """
    doc = task.eval_docs[document]
    text = task.doc_to_text(doc)
    text = text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, default=str)
    described = task.config.description
    before = apply_template(described, doc) if isinstance(described, str) else ""
    return f"{before}{text}{task.doc_to_prefix(doc) or ''}"


def score_of(answer: Answered, metric: str, scale: Scale) -> float:
    """The judge's score; nan if it gave none.

    Args:
        answer: that was judged.
        metric: the host's ``metric,filter``.
        scale: of the audit.

    Raises:
        InvalidInputError: it is not on the scale.
    """
    score = answer.metrics.get(metric, math.nan)
    if not (math.isnan(score) or scale.low <= score <= scale.high):
        raise InvalidInputError(
            f"{metric} of document {answer.doc_id} is {score:g}, and the audit's scale is {scale}; nothing "
            "more was asked. Begin an audit with the judge's scale in another STORE, for example "
            "--score_range 1..10"
        )
    return score
