"""What people read of an answer, and what its judge gave."""

from __future__ import annotations

import json
import math
from typing import Any

from evalbudget.audits.store import Answer, Scale
from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.host.answers import Answered


def refuse_unreadable(name: str, task: Any) -> None:
    """Refuse a task whose answers are no texts.

    Raises:
        InvalidInputError: people would have nothing to read.
    """
    if task.OUTPUT_TYPE != "generate_until":
        raise InvalidInputError(
            f"task {name!r} is of type {task.OUTPUT_TYPE}: models say nothing that people could label; "
            "audit a task of type generate_until"
        )


def readable(task: Any, answer: Answered) -> Answer:
    """What a person who labels reads: the document's own prompt, and what the model said to it."""
    record = answer.records[0]
    said = record["resps"]
    while isinstance(said, list | tuple):
        said = said[0] if said else ""
    return Answer(prompt_of(task, record["doc"]), str(said))


def prompt_of(task: Any, document: Any) -> str:
    """A document's own prompt: without examples and chat template, which differ from model to model."""
    text = task.doc_to_text(document)
    return text if isinstance(text, str) else json.dumps(text, ensure_ascii=False, default=str)


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
            "more was asked. Begin an audit with the judge's scale, for example --score-range 1..10"
        )
    return score
