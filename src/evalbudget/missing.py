"""What a score that is missing counts as: one word for finished logs and for races, on both hosts."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from evalbudget.errors import UnknownNameError

if TYPE_CHECKING:  # numpy takes longer to import than options do
    from evalbudget.statistics._bounds import FloatArray


class Missing(StrEnum):
    """What an item without a score counts as, where two models are compared.

    A score is missing where a model was asked and gave none that could be read. A score that does not apply
    to an item, by what its task declares, is not missing.
    """

    WORST = "worst"
    """The worst for the claim: lowest for whom the claim favours, highest for the other. What is decided so
    would be decided whatever the missing scores are."""
    ZERO = "zero"
    """The lowest possible score: an answer that crashes is a wrong answer."""
    DROP = "drop"
    """Nothing: only items count that both models have. It is right where a score is missing for reasons that
    have nothing to do with what it would have been."""

    def ends(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The scores as they count for a model of which it is claimed that it is better, and worse.

        Args:
            scores: in [0, 1], nan where missing, any shape.

        Returns:
            Both of the same shape; nan only where the item does not count.
        """
        import numpy as np

        if self is Missing.DROP:
            return scores, scores
        low = np.where(np.isnan(scores), 0.0, scores)
        return low, np.where(np.isnan(scores), 1.0, scores) if self is Missing.WORST else low


def as_missing(typed: str | None) -> Missing:
    """What a person says; the worst where nothing is said.

    Raises:
        UnknownNameError: it is none of the three.
    """
    if typed is None:
        return Missing.WORST
    if typed not in list(Missing):
        raise UnknownNameError("value of --missing", typed, [each.value for each in Missing])
    return Missing(typed)
