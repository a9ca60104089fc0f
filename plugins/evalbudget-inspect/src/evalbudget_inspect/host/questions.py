"""What samples ask: the text for people, and a digest by which questions are matched."""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_uppercase

from inspect_ai.dataset import Sample
from inspect_ai.log import EvalSampleSummary

from evalbudget.backtest import digest_of

_TEXT = 1000  # characters; the core keeps fewer
_CUT = "(content truncated)"
"""How the host ends a text of which its summaries keep the beginning, about 5,000 characters."""
_ELSEWHERE = ("attachment://", "<base64-data-removed>")
"""What the host writes in place of data, which it keeps beside the text, or not at all."""


def text_of(summary: EvalSampleSummary) -> str:
    """The beginning of what was asked; summaries have no more of each message."""
    if isinstance(summary.input, str):
        return summary.input[:_TEXT]
    asked = [message for message in summary.input if message.role == "user"] or summary.input
    return "\n".join(message.text for message in asked)[:_TEXT]


def digests_of(samples: Iterable[EvalSampleSummary]) -> dict[str, str]:
    """Of what these samples of a log asked, by id."""
    found: dict[str, str] = {}
    for sample in samples:
        found.setdefault(str(sample.id), _digest(sample))
    return found


def is_told(summary: EvalSampleSummary) -> bool:
    """Whether the summary has all that was asked, so that the same digest is the same question.

    It has the beginning of long texts, and of media only the kind.
    """
    question, asked = _question(summary), summary.input
    plain = isinstance(asked, str) or all(isinstance(message.content, str) for message in asked)
    return plain and question is not None and not any(part.endswith(_CUT) for part in question)


def digests_to_be(samples: Iterable[Sample]) -> dict[str, str]:
    """The same of samples of a task, as a log will have it."""
    return digests_of(map(_to_be, samples))


def asks_else(summary: EvalSampleSummary, sample: Sample) -> bool:
    """Whether a sample of a log surely asked another question than a task's sample does.

    As far as summaries tell: they have the beginning of long texts, and of media only the kind.
    """
    logged, planned = _question(summary), _question(_to_be(sample))
    return logged is not None and planned is not None and logged != planned


def is_judged_else(summary: EvalSampleSummary, sample: Sample) -> bool:
    """Whether a sample of a log had another right answer than a task's sample, which asks the same, has."""
    return _right(summary) != _right(_to_be(sample))


def _to_be(sample: Sample) -> EvalSampleSummary:
    """What the summary of a sample will be."""
    return EvalSampleSummary(
        id=sample.id or "", epoch=1, input=sample.input, choices=sample.choices, target=sample.target
    )


def _question(summary: EvalSampleSummary) -> list[str] | None:
    """All messages, and choices in whatever order; None where a log may keep a part of it elsewhere."""
    question = [*_said(summary), *sorted(summary.choices or [])]
    return None if any(mark in part for part in question for mark in _ELSEWHERE) else question


def _said(summary: EvalSampleSummary) -> list[str]:
    asked = summary.input
    return [asked] if isinstance(asked, str) else [f"{m.role}: {m.text}" for m in asked]


def _digest(summary: EvalSampleSummary) -> str:
    """Of all messages, choices in whatever order, and of the right answer: its text where it is a choice.

    A text that the summary cuts short is told from another one by its right answer as well.
    """
    question = [*_said(summary), *sorted(summary.choices or [])]
    if any(part.endswith(_CUT) for part in question):
        question.append(str(_right(summary)))
    return digest_of(question[0] if len(question) == 1 else question, _right(summary))


def _right(summary: EvalSampleSummary) -> str | list[str]:
    """The right answer; choices stand in another order elsewhere, and so under other letters."""
    targets = [summary.target] if isinstance(summary.target, str) else list(summary.target)
    choices = dict(zip(ascii_uppercase, summary.choices or (), strict=False))
    if choices and all(target in choices for target in targets):
        return sorted(choices[target] for target in targets)
    return summary.target
