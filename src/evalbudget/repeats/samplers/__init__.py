"""Samplers that repeat items: one file per policy."""

from evalbudget.repeats.samplers.auto import Auto
from evalbudget.repeats.samplers.base import JudgeOf, RepeatSampler
from evalbudget.repeats.samplers.eb_bernstein import EBBernstein
from evalbudget.repeats.samplers.objective import Objective
from evalbudget.repeats.samplers.rating_kernel import RatingKernel
from evalbudget.repeats.samplers.robin import Robin
from evalbudget.repeats.samplers.robin_hood import RobinHood
from evalbudget.repeats.samplers.uniform import Uniform

__all__ = [
    "Auto",
    "EBBernstein",
    "JudgeOf",
    "Objective",
    "RatingKernel",
    "RepeatSampler",
    "Robin",
    "RobinHood",
    "Uniform",
]
