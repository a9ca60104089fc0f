"""Answers that only copy earlier ones: they were paid for, and repeat nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

FEWEST = 8
"""Answers to items that were answered before, from which on copies are noticed."""
COPIED = 2e-5
"""Probability below which a model that varied before does not say all the same again by chance."""


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

        If nothing is copied, the last of n answers to an item may as well be any of them: that it repeats one
        of the others has the probability :math:`m / n`, of which m are not the only one of their kind. So
        all of these are copies with :math:`\prod m_i / n_i \le q` in one of :math:`1 / q` rounds at most,
        however few the model's answers are. Items with a single earlier answer tell nothing and count 1.

        Args:
            answers: item and text of each.

        Returns:
            Places of the copies in ``answers``, none where one answer is new or they are fewer than
            ``FEWEST``; and the probability, 1 where nothing is known.
        """
        again = [(place, item, text) for place, (item, text) in enumerate(answers) if item in self._said]
        if len(again) < FEWEST or not all(text in self._said[item] for _, item, text in again):
            return [], 1.0
        heard = {item: Counter(self._said[item]) for _, item, _ in again}
        chance = 1.0
        for _, item, text in again:
            kinds = heard[item]
            kinds[text] += 1
            chance *= sum(n for n in kinds.values() if n > 1) / kinds.total()
        return [place for place, _, _ in again], chance
