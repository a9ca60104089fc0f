"""What every host's budgeted runs of one model share: configuration, rows, tables and the closing summary."""

from evalbudget.repeats.config import DEFAULT_SAMPLER, RepeatConfig
from evalbudget.repeats.estimates import (
    COUNTS,
    LEVEL,
    BenchmarkMean,
    describe_mean,
    describe_panel,
    finite,
    item_columns,
    mean_estimates,
    whole_counts,
)
from evalbudget.repeats.groups import describe_group
from evalbudget.repeats.options import parse_option
from evalbudget.repeats.shared import SharedSummary, share_budget
from evalbudget.repeats.summary import Outcome, Summary, summarize

__all__ = [
    "COUNTS",
    "DEFAULT_SAMPLER",
    "LEVEL",
    "BenchmarkMean",
    "Outcome",
    "RepeatConfig",
    "SharedSummary",
    "Summary",
    "describe_group",
    "describe_mean",
    "describe_panel",
    "finite",
    "item_columns",
    "mean_estimates",
    "parse_option",
    "share_budget",
    "summarize",
    "whole_counts",
]
