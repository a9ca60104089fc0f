"""Earlier logs of other models, as predictions for a race."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from inspect_ai.log import EvalLog, EvalSpec

from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError
from evalbudget.races import RaceConfig, history_factors
from evalbudget.races.prediction import FactorModel
from evalbudget_inspect.reading.files import logs_in
from evalbudget_inspect.reading.open_logs import open_scores


def earlier_scores(
    config: RaceConfig, items: Sequence[str], tasks: Collection[str], series: str, spec: EvalSpec
) -> tuple[FactorModel | None, str]:
    """The item factors that a race predicts by, and a sentence on what they are.

    Args:
        config: names the history.
        items: sample ids; history is matched by them.
        tasks: names of tasks whose logs are history.
        series: the score that decides, as readers name it.
        spec: of one task of the race: its own logs are no history.

    Returns:
        No factors, and why, where the history cannot be used.

    Raises:
        InvalidInputError: the history cannot be read, or its scores are outside of the declared range.
    """

    def is_history(log: EvalLog) -> bool:
        same_race = log.eval.run_id == spec.run_id or (
            spec.eval_set_id is not None and log.eval.eval_set_id == spec.eval_set_id
        )
        return log.status == "success" and not same_race and log.eval.task in tasks

    def open_logs(path: Path) -> RecordedScores | str:
        try:
            scores = open_scores(path, wanted=is_history)
        except InvalidInputError as ex:
            if next(logs_in(path), None) is None:
                raise
            return str(ex)
        return f"{path} holds no finished log of {', '.join(sorted(tasks))}" if scores is None else scores

    return history_factors(config, items, [series], open_folder=open_logs)
