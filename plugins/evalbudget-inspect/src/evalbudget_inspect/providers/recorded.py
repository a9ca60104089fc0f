"""``recorded/<rater>``: a recorded-scores file plays judge, through inspect's own model interface."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from inspect_ai.model import GenerateConfig, ModelAPI, modelapi

from evalbudget.backtest import RecordedScores
from evalbudget.errors import InvalidInputError, UnknownNameError
from evalbudget.hooks import plugins
from evalbudget.repeats.backtest import Draws, Pool
from evalbudget_inspect.providers.reply import TEMPLATE, AskedCell, OfflineModel


@modelapi(name="recorded")
def recorded() -> type[ModelAPI]:
    """The recorded judge."""
    return RecordedJudge


class RecordedJudge(OfflineModel):
    """Replies with one of the ratings recorded for the sample, drawn with replacement.

    Which one depends on (seed, sample id, epoch) alone, as in ``evalbudget backtest``.

    Args:
        model_name: the rater.
        base_url: not used.
        api_key: not used.
        config: not used.
        file: recorded scores, any format ``evalbudget backtest`` reads.
        model: the recorded model, if there are several.
        seed: of the draws.
        template: of the reply; ``{value}`` is the rating, ``{grade}`` C, P or I for 1, 0.5 or 0.
        latency: seconds to wait before replying.

    Raises:
        InvalidInputError: no file, or several models recorded and none named.
        UnknownNameError: the file has no such rater or model.
    """

    provider = "recorded"

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008
        *,
        file: str | None = None,
        model: str | None = None,
        seed: int = 0,
        template: str = TEMPLATE,
        latency: float = 0.0,
        **_: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, config, template, latency)
        if file is None:
            raise InvalidInputError(
                f"recorded/{model_name} needs its scores: -M file=scores.npz, or for a role "
                f'--model-role \'grader={{"model": "recorded/{model_name}", '
                '"model_args": {"file": "scores.npz"}}\''
            )
        scores = plugins().open_scores(Path(file))
        pool = Pool.of(
            scores,
            _index("model", model, scores.models),
            _index("rater", model_name, scores.raters),
            min_repeats=1,
        )
        self._items = {name: i for i, name in enumerate(pool.items)}
        self._known = frozenset(scores.items)
        self._draws = Draws(pool, seed)

    def _rating(self, cell: AskedCell) -> float | None:
        if cell.item not in self._known:
            raise UnknownNameError("item in the recorded scores", cell.item, self._known)
        position = self._items.get(cell.item)
        if position is None:
            return None
        return float(self._draws.of(np.array([position]), np.array([cell.epoch - 1]))[0])


def _index(kind: str, name: str | None, names: tuple[str, ...]) -> int:
    if name is None and len(names) == 1:
        return 0
    if name is None:
        raise InvalidInputError(f"the recorded scores have several {kind}s; name one: {', '.join(names)}")
    if name not in names:
        raise UnknownNameError(kind, name, names)
    return names.index(name)


__all__ = ["RecordedJudge", "RecordedScores", "recorded"]
