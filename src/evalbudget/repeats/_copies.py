"""Answers that only copy earlier ones: they were paid for, and repeat nothing."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from itertools import combinations

FEWEST = 8
"""Answers to items that were answered before, from which on copies are noticed."""
COPIED = 1e-6
"""Probability below which a model that varied before does not say all the same again by chance."""
_MOST = 8  # earlier answers of an item that are compared with one another


class Copies:
    """Remembers what a model said, and tells when it only says it again."""

    def __init__(self) -> None:
        self._said: dict[Hashable, list[str]] = {}

    def remember(self, item: Hashable, text: str) -> None:
        """Note an answer that counts as a reading of its item."""
        self._said.setdefault(item, []).append(text)

    @property
    def has_varied(self) -> bool:
        """Whether the answers to some item differ."""
        return any(len(set(said)) > 1 for said in self._said.values())

    def among(self, answers: Sequence[tuple[Hashable, str]]) -> tuple[list[int], float]:
        r"""Which answers are to items that were answered before, if all of these are copies.

        Of the I items with several earlier answers, P pairs of answers to the same item, S of them the same,
        give the probability :math:`p = (S + 1) / (P + 2)` that two answers agree; one of k earlier answers is
        said again with probability k p at most, so that all of them are with :math:`\prod_{i=1}^{I}
        \min(1, k_i p)` at most. Items with a single earlier answer tell nothing and count 1.

        Args:
            answers: item and text of each.

        Returns:
            Places of the copies in ``answers``, none where one answer is new or they are fewer than
            ``FEWEST``; and the probability, 1 where nothing is known.
        """
        again = [
            (place, text, self._said[item])
            for place, (item, text) in enumerate(answers)
            if item in self._said
        ]
        if len(again) < FEWEST or not all(text in said for _, text, said in again):
            return [], 1.0
        several = [said for _, _, said in again if len(said) > 1]
        pairs = [a == b for said in several for a, b in combinations(said[:_MOST], 2)]
        agree = (sum(pairs) + 1.0) / (len(pairs) + 2.0)
        chance = math.prod(min(1.0, agree * len(said)) for said in several)
        return [place for place, _, _ in again], chance
