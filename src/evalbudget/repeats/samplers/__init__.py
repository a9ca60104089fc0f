"""Samplers that repeat items: one file per policy."""

from evalbudget.repeats.samplers._base import JudgeOf, RepeatSampler
from evalbudget.repeats.samplers._default_auto import Auto
from evalbudget.repeats.samplers._eb_bernstein import EBBernstein
from evalbudget.repeats.samplers._objective import Objective
from evalbudget.repeats.samplers._rating_kernel import RatingKernel
from evalbudget.repeats.samplers._robin import Robin
from evalbudget.repeats.samplers._robin_hood import RobinHood
from evalbudget.repeats.samplers._sample import Sample
from evalbudget.repeats.samplers._uniform import Uniform

__all__ = [
    "Auto",
    "EBBernstein",
    "JudgeOf",
    "Objective",
    "RatingKernel",
    "RepeatSampler",
    "Robin",
    "RobinHood",
    "Sample",
    "Uniform",
]
