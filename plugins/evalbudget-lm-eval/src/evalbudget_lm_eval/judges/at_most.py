"""What judging an answer can cost, before there is one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget_lm_eval.host.answers import Asked, key_of
from evalbudget_lm_eval.host.host_evaluate import PrimedTasks
from evalbudget_lm_eval.host.identity import short_name
from evalbudget_lm_eval.host.paid_calls import PaidCalls
from evalbudget_lm_eval.judges.asking import request_for
from evalbudget_lm_eval.judges.filter import panel_of
from evalbudget_lm_eval.judges.grading import TEMPLATE, Grading
from evalbudget_lm_eval.judges.panel import JudgePanel

_LETTERS = 4  # of a token of an answer that nobody has seen yet

Calls = Sequence[tuple[str, float]]
"""Judges' models, and what each call costs at most."""


def judgings_at_most(paid: PaidCalls, primed: PrimedTasks, cells: Iterable[Asked]) -> Mapping[str, Calls]:
    """By cell, as a bill names it; tasks without judges have none.

    Raises:
        InvalidInputError: a judge's prompt asks for a field that documents lack.
        BudgetError: nobody knows the price of a judge, or nothing limits its replies.
    """
    own = {name: panel for name in primed.names if (panel := panel_of(primed.task(name)))}
    known: dict[tuple[str, int], Calls] = {}
    found = {}
    for asked in cells:
        if asked.task in own:
            if asked.document not in known:
                known[asked.document] = judging_at_most(paid, primed, own[asked.task], *asked.document)
            found[key_of(asked)] = known[asked.document]
    return found


def dearest_answer(paid: PaidCalls, primed: PrimedTasks) -> tuple[float, float]:
    """What one call costs at most over all documents, and one answer and its judging do.

    Judging is that of the longest document of each task.

    Raises:
        InvalidInputError: a judge's prompt asks for a field that documents lack.
        BudgetError: nobody knows the price of a model, or nothing limits its replies.
    """
    call = answer = 0.0
    longest = []
    for name in primed.names:
        for document in primed.documents(name):
            requests = primed.instances(name, document)
            each = [(paid.most_of(primed.lm, one), one.repeats or 1) for one in requests]
            call = max([call, *(most for most, _ in each)])
            answer = max(answer, sum(most * times for most, times in each))
        if documents := primed.documents(name):
            longest.append(Asked(name, max(documents, key=lambda doc: len(str(primed.doc(name, doc)))), 0))
    judgings = judgings_at_most(paid, primed, longest).values()
    return call, answer + max((sum(most for _, most in calls) for calls in judgings), default=0.0)


def judgings_of_answer(primed: PrimedTasks) -> int:
    """How many calls of judges one answer takes at most."""
    found = [0]
    for name in primed.names:
        if (panel := panel_of(primed.task(name))) is not None:
            requests = primed.instances(name, primed.documents(name)[0])
            found.append(panel.calls_per_generation * sum(one.repeats or 1 for one in requests))
    return max(found)


def judging_at_most(paid: PaidCalls, primed: PrimedTasks, panel: JudgePanel, task: str, doc_id: int) -> Calls:
    """Of one document's answer, as long as it may be; whose turn it is counts as the dearest judge's.

    What a prompt that is a function, or a template that takes an answer apart, makes of it is not known
    before: ours stands in for that.
    """
    requests, doc, grading = primed.instances(task, doc_id), primed.doc(task, doc_id), panel.grading
    longest = max((paid.longest_of(primed.lm, one) for one in requests), default=0)
    prompt = _told(grading, doc, "x" * (_LETTERS * longest))
    calls = [_most(paid, judge, prompt) for judge in panel.specs]
    dearest = sorted(calls, key=lambda call: call[1], reverse=True)[: panel.calls_per_generation]
    return dearest * sum(one.repeats or 1 for one in requests)


def _told(grading: Grading, doc: Mapping[str, Any], answer: str) -> str:
    ours = replace(grading, prompt=TEMPLATE)
    if not isinstance(grading.prompt, str):
        return ours.render(doc, answer)
    try:
        return grading.render(doc, answer)
    except InvalidInputError:
        if not grading.fields <= {*doc}:
            raise
        return grading.prompt + ours.render(doc, answer)


def _most(paid: PaidCalls, judge: Any, prompt: str) -> tuple[str, float]:
    lm = judge.load()
    return short_name(lm), paid.most_of(lm, request_for(judge, lm, prompt))
