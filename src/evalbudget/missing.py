"""What a score that is missing counts as: one word for finished logs and for races, on both hosts."""

from __future__ import annotations

from enum import StrEnum


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
