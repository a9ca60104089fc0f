"""Samplers that repeat items: one file per policy."""

from evalbudget.repeats._objective import Objective
from evalbudget.repeats.samplers._base import JudgeOf, RepeatSampler
from evalbudget.repeats.samplers._phased import Auto, EBBernstein, PhasedSampler, RatingKernel
from evalbudget.repeats.samplers._robin import Robin
from evalbudget.repeats.samplers._robin_hood import RobinHood
from evalbudget.repeats.samplers._sample import Sample
from evalbudget.repeats.samplers._uniform import Uniform
from evalbudget.repeats.samplers._urgency import UrgencySampler

__all__ = [
    "Auto",
    "EBBernstein",
    "JudgeOf",
    "Objective",
    "PhasedSampler",
    "RatingKernel",
    "RepeatSampler",
    "Robin",
    "RobinHood",
    "Sample",
    "Uniform",
    "UrgencySampler",
]
