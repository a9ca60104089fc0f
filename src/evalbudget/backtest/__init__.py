"""Replays recorded scores: what would a sampler have saved on the logs at hand?

Example::

    from evalbudget.backtest import RecordedScores, backtest

    result = backtest(
        RecordedScores.load("scores.npz"),
        samplers=["uniform", "auto"],
        budgets=["20x", 5000],
        seeds=range(50),
    )
    print(result.table())
"""

from evalbudget.backtest.audit import backtest_audits
from evalbudget.backtest.audit_result import AuditResult, AuditRow
from evalbudget.backtest.engine import backtest
from evalbudget.backtest.history import factors_of, history_of
from evalbudget.backtest.logs import Bought, LogColumns, Ordinals
from evalbudget.backtest.purchase import Purchase
from evalbudget.backtest.race import backtest_race
from evalbudget.backtest.race_result import RaceResult, RaceRow
from evalbudget.backtest.recorded import RecordedScores
from evalbudget.backtest.rescale import rescale_raters
from evalbudget.backtest.result import Average, BacktestResult, PoolInfo, Row
from evalbudget.backtest.rotation import RotationResult, RotationRow, backtest_rotation

__all__ = [
    "AuditResult",
    "AuditRow",
    "Average",
    "BacktestResult",
    "Bought",
    "LogColumns",
    "Ordinals",
    "PoolInfo",
    "Purchase",
    "RaceResult",
    "RaceRow",
    "RecordedScores",
    "RotationResult",
    "RotationRow",
    "Row",
    "backtest",
    "backtest_audits",
    "backtest_race",
    "backtest_rotation",
    "factors_of",
    "history_of",
    "rescale_raters",
]
