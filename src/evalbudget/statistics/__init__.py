"""Kernels: arrays in, arrays out. Confidence sequences, shrinkage, effects of judges."""

from evalbudget.statistics._anytime_betting import betting_intervals
from evalbudget.statistics._bounds import Bounds, check_level
from evalbudget.statistics._means import known_mean

__all__ = ["Bounds", "betting_intervals", "check_level", "known_mean"]
