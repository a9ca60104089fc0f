"""What a model's few answers say about the rest of a benchmark, learned from history."""

from evalbudget.prediction.factor_model import FactorModel, Match, match_items

__all__ = ["FactorModel", "Match", "match_items"]
