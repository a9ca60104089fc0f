"""A host's score value as a number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER, PARTIAL, Score, value_to_float

from evalbudget.design import LARGEST
from evalbudget.errors import InvalidInputError

_TWO = 2
_SHOWN = 30  # characters of a word that is no score
_ALONE, _MOSTLY, _TIMES = 3, 10, 2
"""A scorer gives no numbers after so many words and none, or so many and twice as many as numbers."""
_WORDS = frozenset({"yes", "no", "true", "false"})
_to_float = value_to_float()


def score_to_float(
    score: Score, name: str, key: str | None = None, flag: str = "--score", *, strict: bool = False
) -> float:
    """The score as a number; nan if it is unscored, a word among numbers, or a dict without this entry.

    Args:
        score: what a scorer returned.
        name: of the scorer, for the message.
        key: which entry of a score that is a dict.
        flag: by which another one is named, for the message.
        strict: words and entries that are not there are refused.

    Raises:
        InvalidInputError: the value is of another kind, or a dict of which no entry was named.
    """
    if not isinstance(score.value, Mapping):
        return value_to_number(score.value, name, flag, strict=strict)
    if key is not None and score.value.get(key) is not None:
        return value_to_number(score.value[key], name, flag, strict=strict)
    if key is not None and not strict:
        return math.nan
    keys = ", ".join(f"{name}.{k}" for k in score.value)
    raise InvalidInputError(
        f"scorer {name!r} returns several values; name the one to allocate by with {flag}: {keys}"
    )


def value_to_number(value: object, name: str, flag: str = "--score", *, strict: bool = False) -> float:
    """A single score value as a number; nan for a word that is none, unless that is to be refused.

    Raises:
        InvalidInputError: it is neither a number nor one of C, I, P, N.
    """
    if isinstance(value, str) and is_graded(value):
        return float(_to_float(value))
    if isinstance(value, str | bool | int | float):
        try:
            return float(value)
        except (ValueError, OverflowError):
            if isinstance(value, str) and not strict:
                return math.nan
    raise InvalidInputError(
        f"scorer {name!r} returned {value!r}, which is not a number and none of C, I, P, N; "
        f"name another scorer with {flag}"
    )


def why_unscored(score: Score, key: str | None) -> str:
    """Why a score is none."""
    value = score.value
    if isinstance(value, Mapping) and key not in value:
        return f"scored without {key!r}"
    word = value[key] if isinstance(value, Mapping) and key is not None else value
    if not isinstance(word, str):
        return "unscored"
    return f"scored {word[:_SHOWN]!r}, which is no number"


def mostly_words(words: int, numbers: int) -> bool:
    """Whether a scorer with so many of both gives words, and not numbers with a word among them."""
    return words >= (_MOSTLY if numbers else _ALONE) and words > _TIMES * numbers


def kind_of(error: str) -> str:
    """The message of a sample's error up to its arguments, so that the same errors are counted together."""
    return error.partition("(")[0] or "error"


def in_range(value: float, bounds: tuple[float, float] | None) -> bool:
    """Whether a score counts: a number that is not too large, within the declared bounds."""
    return abs(value) <= LARGEST and (bounds is None or bounds[0] <= value <= bounds[1])


@dataclass
class Seen:
    """What kinds of score came, and so whether their range is known without being declared."""

    graded: bool = True
    numbers: set[float] = field(default_factory=set)
    """Of those that were not graded; not more than it takes to tell."""
    any: bool = False
    count: int = 0
    """Scores that are numbers."""
    words: int = 0
    """Scores that are none: words, or dicts that lack the entry."""

    def read(self, score: Score, name: str, key: str | None) -> float:
        """A score as a number, nan for none, noted.

        Raises:
            InvalidInputError: it cannot be reckoned with, or words came that show that few numbers will.
        """
        value = score_to_float(score, name, key)
        part = score.value.get(key) if isinstance(score.value, Mapping) and key is not None else score.value
        if not math.isnan(value):
            self.count += 1
            self.add(part)
        elif part is None or isinstance(part, str):
            self.words += 1
            if mostly_words(self.words, self.count):
                score_to_float(score, name, key, strict=True)
        return value

    def add(self, value: object) -> None:
        """Note a score's value; unscored ones and words say nothing."""
        if is_graded(value):
            self.any = True
            return
        if isinstance(value, str | float) and math.isnan(value_to_number(value, "scorer")):
            return
        self.any, self.graded = True, False
        if len(self.numbers) <= _TWO:
            self.numbers.add(float(value) if isinstance(value, int | float) else math.nan)

    def range(self, *, accuracy: bool = False) -> tuple[float, float] | None:
        """0 to 1 if no score can be outside, as far as one can tell; None where the range is not known.

        It is known of C, I, P, N, yes, no, true, false and booleans. Numbers say nothing of what else could
        come, unless there are both zeros and ones and nothing else, or only one of them in an accuracy.

        Args:
            accuracy: the scorer's own metrics include the host's ``accuracy``.
        """
        zero_one = self.numbers == {0.0, 1.0} or (accuracy and self.numbers <= {0.0, 1.0})
        return (0.0, 1.0) if self.any and (self.graded or zero_one) else None


def known_range(values: Iterable[object], *, accuracy: bool = False) -> tuple[float, float] | None:
    """The range of these scores if their kind tells it; see :meth:`Seen.range`."""
    seen = Seen()
    for value in values:
        seen.add(value)
    return seen.range(accuracy=accuracy)


def is_graded(value: object) -> bool:
    """Whether a score is one of C, I, P, N, yes, no, true, false, or a boolean."""
    if isinstance(value, str):
        return value in (CORRECT, INCORRECT, PARTIAL, NOANSWER) or value.lower() in _WORDS
    return isinstance(value, bool)
