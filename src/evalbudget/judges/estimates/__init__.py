"""Estimators for panels of judges: the panel mean, each judge's bias, where the variance comes from."""

from evalbudget.judges.estimates._bias import JudgeBiases, judge_biases
from evalbudget.judges.estimates._components import Component, VarianceComponents, variance_components
from evalbudget.judges.estimates._panel_mean import (
    between_clusters,
    judge_corrected,
    judge_corrected_generations,
    judge_mean_over_sampled_items,
    panel_mean,
)
from evalbudget.judges.estimates._rows import (
    Bias,
    biases_by_judge,
    component_rows,
    cost_rows,
    count_rows,
    short_names,
)
from evalbudget.judges.estimates._scales import ScaleDiagnosis, diagnose_scales, require_one_scale
from evalbudget.judges.estimates._scores import JudgeScores, Source
from evalbudget.judges.estimates._self_preference import SelfPreference, same_models, self_preference
from evalbudget.judges.estimates._votes import EffectiveVotes, effective_votes

__all__ = [
    "Bias",
    "Component",
    "EffectiveVotes",
    "JudgeBiases",
    "JudgeScores",
    "ScaleDiagnosis",
    "SelfPreference",
    "Source",
    "VarianceComponents",
    "between_clusters",
    "biases_by_judge",
    "component_rows",
    "cost_rows",
    "count_rows",
    "diagnose_scales",
    "effective_votes",
    "judge_biases",
    "judge_corrected",
    "judge_corrected_generations",
    "judge_mean_over_sampled_items",
    "panel_mean",
    "require_one_scale",
    "same_models",
    "self_preference",
    "short_names",
    "variance_components",
]
