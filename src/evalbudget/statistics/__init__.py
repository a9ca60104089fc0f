"""Kernels: arrays in, arrays out. Confidence sequences, shrinkage, effects of judges."""

from evalbudget.statistics._anytime_betting import betting_intervals
from evalbudget.statistics._best_proof import check_delta
from evalbudget.statistics._bounds import BoolArray, Bounds, FloatArray, IntArray, check_level
from evalbudget.statistics._exact_share import exact_share
from evalbudget.statistics._means import known_mean
from evalbudget.statistics._paired_test import PairedDraws, UnorderedPairs
from evalbudget.statistics._shrinkage import t_quantile

__all__ = [
    "BoolArray",
    "Bounds",
    "FloatArray",
    "IntArray",
    "PairedDraws",
    "UnorderedPairs",
    "betting_intervals",
    "check_delta",
    "check_level",
    "exact_share",
    "known_mean",
    "t_quantile",
]
