"""Estimators for panels of judges: the panel mean, each judge's bias, where the variance comes from."""

from evalbudget.estimators.judges.bias import JudgeBiases, judge_biases
from evalbudget.estimators.judges.components import (
    Component,
    VarianceComponents,
    variance_components,
    variance_components_literal,
)
from evalbudget.estimators.judges.difference import PairedScores, pair_scores, paired_difference
from evalbudget.estimators.judges.panel_mean import (
    judge_corrected,
    judge_corrected_generations,
    judge_mean_over_sampled_items,
    panel_mean,
)
from evalbudget.estimators.judges.rows import bias_rows, component_rows, count_rows, short_names
from evalbudget.estimators.judges.scales import ScaleDiagnosis, diagnose_scales, require_one_scale, rescale
from evalbudget.estimators.judges.scores import JudgeScores
from evalbudget.estimators.judges.self_preference import SelfPreference, same_models, self_preference
from evalbudget.estimators.judges.sources import Source
from evalbudget.estimators.judges.votes import EffectiveVotes, effective_votes

__all__ = [
    "Component",
    "EffectiveVotes",
    "JudgeBiases",
    "JudgeScores",
    "PairedScores",
    "ScaleDiagnosis",
    "SelfPreference",
    "Source",
    "VarianceComponents",
    "bias_rows",
    "component_rows",
    "count_rows",
    "diagnose_scales",
    "effective_votes",
    "judge_biases",
    "judge_corrected",
    "judge_corrected_generations",
    "judge_mean_over_sampled_items",
    "pair_scores",
    "paired_difference",
    "panel_mean",
    "require_one_scale",
    "rescale",
    "same_models",
    "self_preference",
    "short_names",
    "variance_components",
    "variance_components_literal",
]
