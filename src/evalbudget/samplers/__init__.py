"""One file per policy; all of them register through the ``evalbudget_register_samplers`` hook."""

from evalbudget.samplers.eb_bernstein import EBBernstein
from evalbudget.samplers.objective import Objective
from evalbudget.samplers.rating_kernel import RatingKernel
from evalbudget.samplers.repeats import JudgeOf, RepeatSampler
from evalbudget.samplers.robin import Robin
from evalbudget.samplers.robin_hood import RobinHood
from evalbudget.samplers.uniform import Uniform

__all__ = [
    "EBBernstein",
    "JudgeOf",
    "Objective",
    "RatingKernel",
    "RepeatSampler",
    "Robin",
    "RobinHood",
    "Uniform",
]
