"""Means of what is there."""

from __future__ import annotations

import math
from collections.abc import Iterable


def known_mean(values: Iterable[float | None]) -> float:
    """Mean of the finite values, for example of what several judges gave one answer; nan without any."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    return math.fsum(known) / len(known) if known else math.nan
