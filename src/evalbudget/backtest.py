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

from evalbudget.audits.backtest._compare_policies import backtest_audits
from evalbudget.audits.backtest._result_table import AuditResult, AuditRow
from evalbudget.judges._backtest import RotationResult, RotationRow, backtest_rotation
from evalbudget.races.backtest._compare_samplers import backtest_race
from evalbudget.races.backtest._history import factors_of, history_of
from evalbudget.races.backtest._result_table import RaceResult, RaceRow
from evalbudget.recorded._asked_again import AtWorst, asked_again
from evalbudget.recorded._declared import Declared, digest_of, few, names_by_settings
from evalbudget.recorded._how_bought import HowBought
from evalbudget.recorded._log_columns import Bought, LogColumns, Ordinals, as_written_by
from evalbudget.recorded._questions import ONE_BY_ONE, asked_twice, match_questions, shows_same
from evalbudget.recorded._race_record import RaceRecord
from evalbudget.recorded._rescale import rescale_raters
from evalbudget.recorded._scores import RecordedScores
from evalbudget.recorded._side_by_side import side_by_side
from evalbudget.recorded._task_name import TaskName
from evalbudget.repeats.backtest._compare_samplers import backtest
from evalbudget.repeats.backtest._result_table import Average, BacktestResult, PoolInfo, Row

__all__ = [
    "ONE_BY_ONE",
    "AtWorst",
    "AuditResult",
    "AuditRow",
    "Average",
    "BacktestResult",
    "Bought",
    "Declared",
    "HowBought",
    "LogColumns",
    "Ordinals",
    "PoolInfo",
    "RaceRecord",
    "RaceResult",
    "RaceRow",
    "RecordedScores",
    "RotationResult",
    "RotationRow",
    "Row",
    "TaskName",
    "as_written_by",
    "asked_again",
    "asked_twice",
    "backtest",
    "backtest_audits",
    "backtest_race",
    "backtest_rotation",
    "digest_of",
    "factors_of",
    "few",
    "history_of",
    "match_questions",
    "names_by_settings",
    "rescale_raters",
    "shows_same",
    "side_by_side",
]
