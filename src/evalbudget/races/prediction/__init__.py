"""What a model's few answers say about the rest of a benchmark, learned from history."""

from evalbudget.races.prediction._anchors import choose_anchors
from evalbudget.races.prediction._calibration import Calibration, calibrate
from evalbudget.races.prediction._factor_model import FactorModel, Match, match_items

__all__ = [
    "Calibration",
    "FactorModel",
    "Match",
    "calibrate",
    "choose_anchors",
    "match_items",
]
