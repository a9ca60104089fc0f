"""A host's score value as a number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER, PARTIAL, Score, value_to_float

from evalbudget.errors import InvalidInputError

_WORDS = frozenset({"yes", "no", "true", "false"})
_to_float = value_to_float()


def score_to_float(score: Score, name: str, key: str | None = None) -> float:
    """The score as a number; nan if it is unscored.

    Args:
        score: what a scorer returned.
        name: of the scorer, for the message.
        key: which entry of a score that is a dict.

    Raises:
        InvalidInputError: the value is neither a number nor one of C, I, P, N.
    """
    if not isinstance(score.value, Mapping):
        return value_to_number(score.value, name)
    if key is None or key not in score.value:
        keys = ", ".join(f"{name}.{k}" for k in score.value)
        raise InvalidInputError(
            f"scorer {name!r} returns several values; name the one to allocate by with --score: {keys}"
        )
    return value_to_number(score.value[key], name)


def value_to_number(value: object, name: str) -> float:
    """A single score value as a number.

    Raises:
        InvalidInputError: it is neither a number nor one of C, I, P, N.
    """
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, str):
        if is_graded(value):
            return float(_to_float(value))
        try:
            return float(value)
        except ValueError:
            pass
    raise InvalidInputError(
        f"scorer {name!r} returned {value!r}, which is not a number and none of C, I, P, N; "
        "name another scorer with --score"
    )


def in_range(value: float, bounds: tuple[float, float] | None) -> bool:
    """Whether a score counts: a finite number, within the declared bounds."""
    return math.isfinite(value) and (bounds is None or bounds[0] <= value <= bounds[1])


def known_range(values: Iterable[object]) -> tuple[float, float] | None:
    """0 to 1 if all values are of a kind that has no others: C, I, P, N, yes, no, true, false and booleans.

    Args:
        values: of scores; numbers that happen to be 0 or 1 say nothing of what else could come.

    Returns:
        None where the range is not known.
    """
    found = False
    for value in values:
        if isinstance(value, float) and math.isnan(value):
            continue  # unscored
        if not is_graded(value):
            return None
        found = True
    return (0.0, 1.0) if found else None


def is_graded(value: object) -> bool:
    """Whether a score is one of C, I, P, N, yes, no, true, false, or a boolean."""
    if isinstance(value, str):
        return value in (CORRECT, INCORRECT, PARTIAL, NOANSWER) or value.lower() in _WORDS
    return isinstance(value, bool)
