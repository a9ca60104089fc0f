"""Raters on different scales, put on one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.recorded._scores import RecordedScores


def rescale_raters(recorded: RecordedScores) -> RecordedScores:
    """Map the range that each rater used, over all models, to 0..1.

    Returns:
        The same scores without the reference, which has no range in common with theirs any more.

    Raises:
        InvalidInputError: a rater gave the same score everywhere.
    """
    scores = np.asarray(recorded.scores, dtype=np.float64)
    low = np.fmin.reduce(np.fmin.reduce(scores, axis=3), axis=(0, 1))
    high = np.fmax.reduce(np.fmax.reduce(scores, axis=3), axis=(0, 1))
    for name, least, most in zip(recorded.raters, low.tolist(), high.tolist(), strict=True):
        if least == most:
            raise InvalidInputError(
                f"judge {name!r} gave {least:g} everywhere, so its range cannot be seen; leave it out"
            )
    scores = (scores - low[:, None]) / (high - low)[:, None]
    return replace(recorded, scores=scores, reference=None)
