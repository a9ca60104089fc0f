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

    def chance(self, answers: Sequence[Answered]) -> float | None:
        """How probable a round of nothing but copies is; None for a round that is none.

        Pairs of earlier answers to the same document tell how often the model says the same twice. Where
        there are none, nothing is known, and the probability is 1.
        """
        chance = self._chance(answers)
        for answer in answers:
            self._remember(answer)
        return chance

    def _chance(self, answers: Sequence[Answered]) -> float | None:
        again = [(a, self._said[a.asked.document]) for a in answers if a.asked.document in self._said]
        if len(again) < FEWEST or not all(_text(answer) in said for answer, said in again):
            return None
        pairs = [a == b for said in self._said.values() for a, b in combinations(said[:8], 2)]
        if not pairs:
            return 1.0
        same = (sum(pairs) + 1.0) / (len(pairs) + 2.0)
        # a copy of one of k answers is at most k times as probable as one of a given answer
        return math.prod(min(1.0, same * len(said)) for _, said in again)

    def _remember(self, answer: Answered) -> None:
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
