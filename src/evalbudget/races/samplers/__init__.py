"""Samplers that race models: one file per policy."""

from evalbudget.races.samplers.base import Cells, Outcome, OutcomeKind, RacingSampler
from evalbudget.races.samplers.lucb import LUCB
from evalbudget.races.samplers.naive_pooling import NaivePooling
from evalbudget.races.samplers.paired_eprocess import PairedEProcess
from evalbudget.races.samplers.proving import ProvingSampler
from evalbudget.races.samplers.pulse import Pulse
from evalbudget.races.samplers.race import Race
from evalbudget.races.samplers.sequential_halving import SequentialHalving
from evalbudget.races.samplers.successive_rejects import SuccessiveRejects
from evalbudget.races.samplers.ucb_e import UCBE
from evalbudget.races.samplers.uniform import UniformRacing

__all__ = [
    "LUCB",
    "UCBE",
    "Cells",
    "NaivePooling",
    "Outcome",
    "OutcomeKind",
    "PairedEProcess",
    "ProvingSampler",
    "Pulse",
    "Race",
    "RacingSampler",
    "SequentialHalving",
    "SuccessiveRejects",
    "UniformRacing",
]
