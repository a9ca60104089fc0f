"""One file per policy; all of them register through the ``evalbudget_register_samplers`` hook."""

from evalbudget.samplers.audit_eprocess import AuditEProcess, HumanOnly
from evalbudget.samplers.audit_sampler import AuditSampler
from evalbudget.samplers.auto import Auto
from evalbudget.samplers.eb_bernstein import EBBernstein
from evalbudget.samplers.lucb import LUCB
from evalbudget.samplers.naive_pooling import NaivePooling
from evalbudget.samplers.objective import Objective
from evalbudget.samplers.paired_eprocess import PairedEProcess
from evalbudget.samplers.pp_lucb import PPLUCB
from evalbudget.samplers.proving import ProvingSampler
from evalbudget.samplers.pulse import Pulse
from evalbudget.samplers.race import Race
from evalbudget.samplers.racing import Cells, Outcome, OutcomeKind, RacingSampler
from evalbudget.samplers.rating_kernel import RatingKernel
from evalbudget.samplers.repeats import JudgeOf, RepeatSampler
from evalbudget.samplers.robin import Robin
from evalbudget.samplers.robin_hood import RobinHood
from evalbudget.samplers.sequential_halving import SequentialHalving
from evalbudget.samplers.successive_rejects import SuccessiveRejects
from evalbudget.samplers.ucb_e import UCBE
from evalbudget.samplers.uniform import Uniform
from evalbudget.samplers.uniform_racing import UniformRacing

__all__ = [
    "LUCB",
    "PPLUCB",
    "UCBE",
    "AuditEProcess",
    "AuditSampler",
    "Auto",
    "Cells",
    "EBBernstein",
    "HumanOnly",
    "JudgeOf",
    "NaivePooling",
    "Objective",
    "Outcome",
    "OutcomeKind",
    "PairedEProcess",
    "ProvingSampler",
    "Pulse",
    "Race",
    "RacingSampler",
    "RatingKernel",
    "RepeatSampler",
    "Robin",
    "RobinHood",
    "SequentialHalving",
    "SuccessiveRejects",
    "Uniform",
    "UniformRacing",
]
