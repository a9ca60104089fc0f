"""Earlier logs of other models, as predictions for a race."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread
from inspect_ai.log import EvalLog, EvalSpec

from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError
from evalbudget.races import RaceConfig, history_factors
from evalbudget.races.prediction import FactorModel
from evalbudget_inspect.reading.files import logs_in
from evalbudget_inspect.reading.open_logs import open_scores


@dataclass(frozen=True)
class Asking:
    """The race that history is for.

    Attributes:
        config: names the history.
        items: sample ids; history is matched by them.
        tasks: names of tasks whose logs are history.
        series: the score that decides, as readers name it.
        spec: of one task of the race: its own logs are no history.
    """

    config: RaceConfig
    items: Sequence[str]
    tasks: frozenset[str]
    series: str
    spec: EvalSpec


async def load_history(asking: Asking) -> tuple[FactorModel | None, str]:
    """The item factors that a race predicts by, and a sentence on what they are.

    Returns:
        No factors, and why, where the history cannot be used.

    Raises:
        InvalidInputError: the history cannot be read, or its scores are outside of the declared range.
    """
    return await anyio.to_thread.run_sync(_load, asking)


def _load(asking: Asking) -> tuple[FactorModel | None, str]:
    def open_logs(path: Path) -> RecordedScores | str:
        try:
            scores = open_scores(path, wanted=lambda log: _is_history(log, asking))
        except InvalidInputError as ex:
            if next(logs_in(path), None) is None:
                raise
            return str(ex)
        if scores is None:
            return f"{path} holds no finished log of {', '.join(sorted(asking.tasks))}"
        return scores

    return history_factors(asking.config, asking.items, [asking.series], open_folder=open_logs)


def _is_history(log: EvalLog, asking: Asking) -> bool:
    spec = asking.spec
    same_race = log.eval.run_id == spec.run_id or (
        spec.eval_set_id is not None and log.eval.eval_set_id == spec.eval_set_id
    )
    return log.status == "success" and not same_race and log.eval.task in asking.tasks
