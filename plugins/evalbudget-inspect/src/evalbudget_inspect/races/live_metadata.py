"""A scorer's metadata that fills itself in when the host copies it into results."""

from __future__ import annotations

import json
from typing import Any

from evalbudget_inspect.races.sample_source import RaceSource


class RaceMetadata(dict[str, Any]):
    """The host deep-copies a scorer's metadata each time it computes metrics; the copy describes the race.

    Args:
        source: of the arm.
        drives: this scorer's scores decide the race.
    """

    def __init__(self, source: RaceSource, *, drives: bool) -> None:
        config = source.group.config
        name, key = source.group.score
        super().__init__(
            sampler=config.sampler,
            budget=config.budget,
            score=name if key is None else f"{name}.{key}",
            score_range=list(config.score_range) if config.score_range else None,
            seed=config.seed,
            history=config.history,
            options=json.loads(json.dumps(dict(config.options), default=str)),
        )
        self._source = source
        self._drives = drives

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        copy = dict(self)
        coordinator, arm = self._source.coordinator, self._source.arm
        board = None if coordinator is None else coordinator.board()
        if self._drives and board is not None and coordinator is not None and arm is not None:
            name = coordinator.names[arm.index]
            copy |= {"arm": name, "race_id": coordinator.race_id, "race": board.as_json}
            copy |= {"outcome": board.outcome, "dropped_at": board.of(name).dropped_at}
        return copy
