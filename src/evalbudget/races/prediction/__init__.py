"""What a model's few answers say about the rest of a benchmark, learned from history."""

from evalbudget.races.prediction._anchors import Anchors, best_anchors, choose_anchors, spread_anchors
from evalbudget.races.prediction._calibration import Calibration, calibrate
from evalbudget.races.prediction._factor_model import FactorModel, Match, match_items

__all__ = [
    "Anchors",
    "Calibration",
    "FactorModel",
    "Match",
    "best_anchors",
    "calibrate",
    "choose_anchors",
    "match_items",
    "spread_anchors",
]
