"""Estimators: readings in, estimates with honest intervals out."""

from evalbudget.repeats.estimates._benchmark_mean import mean_over_fixed_items, mean_over_sampled_items
from evalbudget.repeats.estimates._estimator import Estimator, Need, estimator_rows
from evalbudget.repeats.estimates._items import ItemEstimates, betting, eb_wilson
from evalbudget.repeats.estimates._readings import ItemReadings

__all__ = [
    "Estimator",
    "ItemEstimates",
    "ItemReadings",
    "Need",
    "betting",
    "eb_wilson",
    "estimator_rows",
    "mean_over_fixed_items",
    "mean_over_sampled_items",
]
