"""What every host's budgeted runs of one model share: the configuration, the rows and the tables."""

from evalbudget.repeats.config import DEFAULT_SAMPLER, RepeatConfig
from evalbudget.repeats.estimates import LEVEL, finite, item_columns, mean_estimates
from evalbudget.repeats.options import parse_option

__all__ = [
    "DEFAULT_SAMPLER",
    "LEVEL",
    "RepeatConfig",
    "finite",
    "item_columns",
    "mean_estimates",
    "parse_option",
]
