"""What is said of answers that failed and were asked again: nobody knows what the first ones were worth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AtWorst:
    """The mean of item means, and what it would be with the lowest score in place of every failure.

    Attributes:
        mean: of the scores that there are.
        worst: with the others.
        low: the lowest score.
    """

    mean: float
    worst: float
    low: float

    @classmethod
    def of(cls, scores: Mapping[T, Sequence[float]], failed: Mapping[T, int], low: float) -> AtWorst:
        """From the scores and failures of items, by item; each has a score."""
        sums = {item: (math.fsum(own), len(own)) for item, own in scores.items()}
        means = [total / n for total, n in sums.values()]
        worst = [
            (total + low * failed.get(item, 0)) / (n + failed.get(item, 0))
            for item, (total, n) in sums.items()
        ]
        return cls(math.fsum(means) / len(means), math.fsum(worst) / len(worst), low)

    def __str__(self) -> str:
        return f"{self.worst:.3g} in place of {self.mean:.3g}, were each of them worth {self.low:g}"


def asked_again(failed: int, asked: int, model: str, worst: Mapping[str, AtWorst] | None = None) -> str:
    """A sentence on the answers of a model that failed and were asked again.

    Args:
        failed: of them.
        asked: answers in all.
        model: its name.
        worst: by score; None where nobody knows which items failed.
    """
    verb = "was" if failed == 1 else "were"
    told = f"{failed:,} of {asked:,} answer{'s' * (asked != 1)} of {model} failed and {verb} asked again"
    known = worst or {}
    means = [str(own) if len(known) == 1 else f"{name} {own}" for name, own in known.items()]
    high = f": {'; '.join(means)}" if means else ""
    return f"{told}: if wrong ones fail more often, scores are too high{high}."
