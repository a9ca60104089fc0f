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
)
from evalbudget.repeats.options import parse_option
from evalbudget.repeats.summary import Outcome, Summary, summarize

__all__ = [
    "COUNTS",
    "DEFAULT_SAMPLER",
    "LEVEL",
    "BenchmarkMean",
    "Outcome",
    "RepeatConfig",
    "Summary",
    "describe_mean",
    "describe_panel",
    "finite",
    "item_columns",
    "mean_estimates",
    "parse_option",
    "summarize",
]
