"""Estimators for races of models: each model's mean, paired differences, ranks and the winner."""

from evalbudget.races.estimates._all_models import (
    ModelRanks,
    differences_from,
    means_at_worst,
    model_means,
    model_ranks,
)
from evalbudget.races.estimates._as_sample import FEWEST_ITEMS, as_sample
from evalbudget.races.estimates._means import benchmark_mean, paired_difference
from evalbudget.races.estimates._winners import PossibleWinners, Rule, possible_winners

__all__ = [
    "FEWEST_ITEMS",
    "ModelRanks",
    "PossibleWinners",
    "Rule",
    "as_sample",
    "benchmark_mean",
    "differences_from",
    "means_at_worst",
    "model_means",
    "model_ranks",
    "paired_difference",
    "possible_winners",
]
