"""Confidence sequences and boundaries: pure kernels, arrays in, arrays out."""

from evalbudget.confidence.betting import BettingSequences, betting_intervals
from evalbudget.confidence.bounds import Bounds, check_level
from evalbudget.confidence.empirical_bernstein import (
    EmpiricalBernsteinSequences,
    empirical_bernstein_intervals,
)
from evalbudget.confidence.stitched import stitched_boundary
from evalbudget.confidence.without_replacement import (
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
