"""Samplers of pairs: which two models' answers to which item are compared next, and which is shown first."""

from evalbudget.cells import Stop
from evalbudget_pairwise.samplers._base import PAIRS, Note, Orders, PairSampler, Round, Table, duels
from evalbudget_pairwise.samplers._duel import Duel
from evalbudget_pairwise.samplers._uniform import UniformPairs

__all__ = [
    "PAIRS",
    "Duel",
    "Note",
    "Orders",
    "PairSampler",
    "Round",
    "Stop",
    "Table",
    "UniformPairs",
    "duels",
]
