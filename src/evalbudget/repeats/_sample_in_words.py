"""Which items a run of few readings read, in one line; and how many would tell twice as much."""

from __future__ import annotations

import math

from evalbudget.repeats._wording import count
from evalbudget.statistics._bounds import IntArray

WHY = "a further item tells more than a second score of an old one"


def sample_in_words(counts: IntArray, strata: str | None = None) -> str:
    """What was read.

    Args:
        counts: readings of each item of the benchmark, shape (n_items,).
        strata: field in proportion to whose values the items were drawn; None for none.
    """
    read, most = int((counts > 0).sum()), int(counts.max(initial=0))
    times = {0: "", 1: " once each", 2: " once or twice each"}.get(most, f" up to {most} times each")
    what = (
        f"All {count(read, 'item')}," if read == counts.size else f"{read:,} of {count(counts.size, 'item')},"
    )
    alike = f" in proportion to {strata}" if strata and read < counts.size else ""
    return f"{what}{times}{alike}: {WHY}"


def enough_for_half(read: int, n_items: int) -> int | None:
    r"""How many items leave half the error of a full run's mean; None where these are all, or too few.

    .. math:: 1/n' = 1/N + (1/n - 1/N)/4
    """
    if not 1 < read < n_items:
        return None
    return math.ceil(1.0 / (1.0 / n_items + (1.0 / read - 1.0 / n_items) / 4.0) - 1e-6)
