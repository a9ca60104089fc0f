"""Samplers of pairs: which two models' answers to which item are compared next, and which is shown first."""

from evalbudget.pairwise.samplers._base import Orders, PairSampler, duels
from evalbudget.pairwise.samplers._duel import Duel
from evalbudget.pairwise.samplers._rounds import Note, Round, Stop, Table
from evalbudget.pairwise.samplers._uniform import UniformPairs

__all__ = ["Duel", "Note", "Orders", "PairSampler", "Round", "Stop", "Table", "UniformPairs", "duels"]
