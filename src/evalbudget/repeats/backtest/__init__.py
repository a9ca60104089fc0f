"""Replays recorded scores under samplers that repeat items."""

from evalbudget.repeats.backtest._pool import Draws, Pool
from evalbudget.repeats.backtest._truth import Outcome, against_truth

__all__ = ["Draws", "Outcome", "Pool", "against_truth"]
