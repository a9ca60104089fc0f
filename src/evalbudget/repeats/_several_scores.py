"""Several scores of every answer decide together: which sampler that takes, and what goes with it."""

from __future__ import annotations

from typing import Any

from evalbudget.errors import InvalidInputError
from evalbudget.repeats.samplers import Joint


def jointly(sampler: str | None, n_scores: int, score_range: object, *, judges: bool) -> dict[str, Any]:
    """The sampler that goes by several scores, and its option.

    Args:
        sampler: that the user named; None for the default.
        n_scores: how many scores decide.
        score_range: that the user declared; None if not.
        judges: whether judges take turns.

    Raises:
        InvalidInputError: another sampler, no scale that they share, or judges that take turns.
    """
    if sampler not in (None, Joint.name):
        raise InvalidInputError(
            f"--score names {n_scores} scores, and sampler {sampler!r} goes by one; use --sampler "
            f"{Joint.name}, or name one score"
        )
    if judges:
        raise InvalidInputError(
            f"--score names {n_scores} scores, and where judges take turns one score decides; name one"
        )
    if score_range is None:
        raise InvalidInputError(
            f"--score names {n_scores} scores; say the scale that they share, for example --score-range 1..10"
        )
    return {"sampler": Joint.name, "ranges": (1.0,) * n_scores}  # one scale: what it is changes nothing
