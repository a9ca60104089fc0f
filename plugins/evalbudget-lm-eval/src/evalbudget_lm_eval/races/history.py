"""Earlier output of lm-eval, or files, as predictions for a race."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError
from evalbudget.races import RaceConfig, history_factors
from evalbudget.races.prediction import FactorModel
from evalbudget_lm_eval.host.logfiles import SamplesFile, samples_files
from evalbudget_lm_eval.log_folder import open_scores


def earlier_scores(
    config: RaceConfig, items: Sequence[str], tasks: Collection[str], metric: str, journal: Path | None
) -> tuple[FactorModel | None, str]:
    """The item factors that a race predicts by, and a sentence on what they are.

    Args:
        config: of the race.
        items: ids of its documents.
        tasks: their names: samples of other tasks are no history.
        metric: that decides, ``metric,filter``.
        journal: of the race, whose own results are no history.

    Returns:
        No factors, and why, where the history cannot be used.

    Raises:
        InvalidInputError: the history cannot be read, or its scores are outside of the declared range.
    """

    def is_history(file: SamplesFile) -> bool:
        ours = (file.block or {}).get("journal")
        return ours is None or ours != str(journal)

    def open_folder(path: Path) -> RecordedScores | str:
        if not samples_files(path):
            raise InvalidInputError(
                f"--history {path} holds no samples_*.jsonl; give a folder of lm-eval's output (made with "
                "--log_samples), a file of recorded scores or a file of factors"
            )
        try:
            scores = open_scores(path, wanted=is_history, of_tasks=tasks)
        except InvalidInputError as ex:
            return str(ex)
        return f"{path} holds no earlier samples of task {', '.join(tasks)}" if scores is None else scores

    # files with one filter name a series by the metric alone
    series = [metric, metric.partition(",")[0]]
    return history_factors(config, items, series, open_folder=open_folder)
