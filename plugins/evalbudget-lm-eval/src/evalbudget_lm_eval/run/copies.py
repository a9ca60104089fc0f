"""Rounds whose answers are copies of earlier ones: they were paid for, and repeat nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from evalbudget_lm_eval.host.answers import Answered
from evalbudget_lm_eval.run.record import Bought

FEWEST = 8
"""Answers of a round to documents that were answered before, from which on copies are noticed."""
CHANCE = 1e-6
"""Probability that a model that varies as much as it did before says all the same again."""


class Copies:
    """Remembers what a model said, and tells when a whole round only says it again.

    Args:
        bought: what earlier runs have of it.
    """

    def __init__(self, bought: Sequence[Bought]) -> None:
        self._said: dict[tuple[str, int], list[str]] = {}
        for one in bought:
            if one.answer is not None:
                self._remember(one.answer)

    def among(self, answers: Sequence[Answered]) -> tuple[list[Answered], float]:
        """Answers to documents that were answered before, if all of them are copies; none otherwise.

        Returns:
            The copies, and how probable it is that a model that varies as it did before says all of them. It
            is told by documents with two answers or more: pairs of these tell how often it says the same
            twice. Of the others nothing is known.
        """
        again = [(a, self._said[a.asked.document]) for a in answers if a.asked.document in self._said]
        copies = all(_text(answer) in said for answer, said in again)
        several = [list(said[:8]) for _, said in again if len(said) > 1]
        for answer in answers:
            self._remember(answer)
        if len(again) < FEWEST or not copies:
            return [], 1.0
        pairs = [a == b for said in several for a, b in combinations(said, 2)]
        same = (sum(pairs) + 1.0) / (len(pairs) + 2.0)
        # a copy of one of k answers is at most k times as probable as one of a given answer
        return [answer for answer, _ in again], math.prod(min(1.0, same * len(said)) for said in several)

    def _remember(self, answer: Answered) -> None:
        # what has no score is asked again because of that, and may rightly be the same once more
        if any(math.isfinite(value) for value in answer.metrics.values()):
            self._said.setdefault(answer.asked.document, []).append(_text(answer))


def _text(answer: Answered) -> str:
    return repr([record.get("resps") for record in answer.records[:1]])


def judged_at_random(task: Any) -> bool:
    """Whether one of the task's filters scores the same response differently another time."""
    for ensemble in getattr(task, "_filters", ()):
        for make in ensemble.filters:
            varies = getattr(getattr(make, "func", make), "varies", None)
            if callable(varies) and varies(**getattr(make, "keywords", {})):
                return True
    return False
