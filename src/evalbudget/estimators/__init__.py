"""Estimators: readings in, estimates with honest intervals out."""

from evalbudget.estimators.anytime_mean import anytime_mean_over_fixed_items
from evalbudget.estimators.audited import AuditedScores, by_segment, ipw_mean, ppi_mean
from evalbudget.estimators.benchmark_mean import mean_over_fixed_items, mean_over_sampled_items
from evalbudget.estimators.items import ItemEstimates, betting, eb_t, eb_wilson
from evalbudget.estimators.readings import ItemReadings
from evalbudget.estimators.result import (
    ConfidenceInterval,
    Coverage,
    Estimate,
    Random,
    Validity,
    check_level,
)

__all__ = [
    "AuditedScores",
    "ConfidenceInterval",
    "Coverage",
    "Estimate",
    "ItemEstimates",
    "ItemReadings",
    "Random",
    "Validity",
    "anytime_mean_over_fixed_items",
    "betting",
    "by_segment",
    "check_level",
    "eb_t",
    "eb_wilson",
    "ipw_mean",
    "mean_over_fixed_items",
    "mean_over_sampled_items",
    "ppi_mean",
]
