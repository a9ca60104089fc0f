"""Estimators: readings in, estimates with honest intervals out."""

from evalbudget.repeats.estimates.anytime_mean import anytime_mean_over_fixed_items
from evalbudget.repeats.estimates.benchmark_mean import mean_over_fixed_items, mean_over_sampled_items
from evalbudget.repeats.estimates.items import ItemEstimates, betting, eb_t, eb_wilson
from evalbudget.repeats.estimates.readings import ItemReadings

__all__ = [
    "ItemEstimates",
    "ItemReadings",
    "anytime_mean_over_fixed_items",
    "betting",
    "eb_t",
    "eb_wilson",
    "mean_over_fixed_items",
    "mean_over_sampled_items",
]
