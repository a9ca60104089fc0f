"""Kernels: arrays in, arrays out. Confidence sequences, boundaries, shrinkage, effects of judges."""

from evalbudget.statistics.betting import BettingSequences, betting_intervals
from evalbudget.statistics.bounds import Bounds, check_level
from evalbudget.statistics.empirical_bernstein import (
    EmpiricalBernsteinSequences,
    empirical_bernstein_intervals,
)
from evalbudget.statistics.stitched import stitched_boundary
from evalbudget.statistics.without_replacement import (
    WithoutReplacementSequences,
    without_replacement_intervals,
)

__all__ = [
    "BettingSequences",
    "Bounds",
    "EmpiricalBernsteinSequences",
    "WithoutReplacementSequences",
    "betting_intervals",
    "check_level",
    "empirical_bernstein_intervals",
    "stitched_boundary",
    "without_replacement_intervals",
]
