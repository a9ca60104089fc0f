"""Earlier scores of other models, as predictions for a race."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from evalbudget.errors import InvalidInputError
from evalbudget.hooks._plugins import plugins
from evalbudget.races._config import RaceConfig
from evalbudget.races.backtest._history import factors_of, history_of
from evalbudget.races.prediction import FactorModel, match_items
from evalbudget.recorded._scores import RecordedScores

OpenFolder = Callable[[Path], "RecordedScores | str"]
"""Reads a folder of a host's logs; text is why there is nothing to learn from."""


def history_factors(
    config: RaceConfig, items: Sequence[str], series: Sequence[str], *, open_folder: OpenFolder | None = None
) -> tuple[FactorModel | None, str]:
    """The item factors that a race predicts by, and a sentence on what they are.

    Args:
        config: of the race; its ``history`` is a file of factors, recorded scores, or a folder of
            logs.
        items: ids of the race's items; history is matched by them.
        series: the score that decides, by the names that readers give it as a rater.
        open_folder: the host's way to read a folder of its logs; None for that of the plugins.

    Returns:
        No factors, and why, where the history cannot be used.

    Raises:
        InvalidInputError: the history cannot be read, or its scores are outside of the declared range; or it
            is factors, and lower scores are better.
    """
    if not config.uses_history:
        return (
            None,
            f"history ignored: the sampler {config.sampler} does not predict; race, pulse and visit do",
        )
    path = Path(str(config.history))
    factors = factors_of(path, items)
    if factors is not None and config.lower_is_better:
        raise InvalidInputError(
            f"--history {path}: factors do not say which way scores are better, and of this race lower is; "
            "give the logs that they were learned from"
        )
    if factors is None:
        found = (
            open_folder(path) if path.is_dir() and open_folder is not None else plugins().open_scores(path)
        )
        if isinstance(found, str):
            return None, f"history ignored: {found}"
        if not found.counts.any():
            return None, f"history ignored: {path} holds no score: every answer is missing"
        shared = len(set(items) & set(found.items))
        if shared < len(items) / 2:  # not worth the training
            return None, f"history ignored: {path} has {shared} of the {len(items)} items, fewer than half"
        try:
            factors = history_of(
                found,
                raters=series,
                score_range=config.bounds,
                lower_is_better=config.lower_is_better,
                seed=config.seed,
            )
        except InvalidInputError as ex:
            raise InvalidInputError(f"--history {path}: {ex}") from None
        where = f", of {len(found.models)} models ({path})"
    else:
        where = f" ({path})"
    match = match_items(factors, items)
    return match.model, match.reason + where
