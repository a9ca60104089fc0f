"""Samplers that race models: one file per policy."""

from evalbudget.races.samplers._base import Cells, RacingSampler
from evalbudget.races.samplers._lucb import LUCB
from evalbudget.races.samplers._naive_pooling import NaivePooling
from evalbudget.races.samplers._paired_eprocess import PairedEProcess
from evalbudget.races.samplers._proof_base import ProvingSampler
from evalbudget.races.samplers._pulse import Pulse
from evalbudget.races.samplers._race import Race
from evalbudget.races.samplers._rounds import Note, Round, Stop, Table
from evalbudget.races.samplers._sequential_halving import SequentialHalving
from evalbudget.races.samplers._successive_rejects import SuccessiveRejects
from evalbudget.races.samplers._ucb_e import UCBE
from evalbudget.races.samplers._uniform import UniformRacing
from evalbudget.races.samplers._visit import Visit

__all__ = [
    "LUCB",
    "UCBE",
    "Cells",
    "NaivePooling",
    "Note",
    "PairedEProcess",
    "ProvingSampler",
    "Pulse",
    "Race",
    "RacingSampler",
    "Round",
    "SequentialHalving",
    "Stop",
    "SuccessiveRejects",
    "Table",
    "UniformRacing",
    "Visit",
]
