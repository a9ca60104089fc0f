"""What makes the scores of a panel differ."""

from __future__ import annotations

from enum import StrEnum


class Source(StrEnum):
    """What makes scores differ."""

    ITEM = "item"
    """alpha: some items are harder."""
    GENERATION = "generation"
    """beta: the model answers differently each time."""
    INTERACTION = "item x judge"
    """Judges differ more on some items than on others."""
    RESIDUAL = "residual"
    """epsilon: the judge's own noise, and everything else."""
    JUDGE = "judge"
    """gamma: some judges are lenient; the mean of gamma_l squared over this panel."""
