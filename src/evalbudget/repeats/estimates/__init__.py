"""Estimators: readings in, estimates with honest intervals out."""

from evalbudget.repeats.estimates._benchmark_mean import mean_over_fixed_items, mean_over_sampled_items
from evalbudget.repeats.estimates._estimator import Estimator, Need, estimator_rows
from evalbudget.repeats.estimates._items import ItemEstimates, betting, eb_wilson
from evalbudget.repeats.estimates._readings import ItemReadings
from evalbudget.repeats.estimates._sample_mean import mean_of_full_run, mean_over_stratified_items
from evalbudget.repeats.estimates._unvaried import unvaried_interval
from evalbudget.statistics._strata import Strata, strata_labels

__all__ = [
    "Estimator",
    "ItemEstimates",
    "ItemReadings",
    "Need",
    "Strata",
    "betting",
    "eb_wilson",
    "estimator_rows",
    "mean_of_full_run",
    "mean_over_fixed_items",
    "mean_over_sampled_items",
    "mean_over_stratified_items",
    "strata_labels",
    "unvaried_interval",
]
