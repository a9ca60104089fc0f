"""Samplers that repeat items: one file per policy."""

from evalbudget.repeats._objective import Objective
from evalbudget.repeats._rounds import Note, Readings, Round, Stop, Wait
from evalbudget.repeats.samplers._base import JudgeOf, RepeatSampler
from evalbudget.repeats.samplers._phased import (
    Auto,
    EBBernstein,
    PhasedSampler,
    RatingKernel,
    checked_phase,
)
from evalbudget.repeats.samplers._robin import Robin
from evalbudget.repeats.samplers._robin_hood import RobinHood
from evalbudget.repeats.samplers._sample import Sample
from evalbudget.repeats.samplers._uniform import Uniform

__all__ = [
    "Auto",
    "EBBernstein",
    "JudgeOf",
    "Note",
    "Objective",
    "PhasedSampler",
    "RatingKernel",
    "Readings",
    "RepeatSampler",
    "Robin",
    "RobinHood",
    "Round",
    "Sample",
    "Stop",
    "Uniform",
    "Wait",
    "checked_phase",
]
