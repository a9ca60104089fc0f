"""Logs that are all of one race."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalbudget_lm_eval.host.logfiles import SamplesFile


def board_of(files: Sequence[SamplesFile]) -> Mapping[str, Any] | None:
    """The leaderboard of the race that all of these are of, as it ended last; None if they are of none.

    A race that went on writes new files of those whom it asked again, and leaves those of the others.
    """
    blocks = [file.block or {} for file in files]
    if not blocks or not all(isinstance(block.get("race"), Mapping) for block in blocks):
        return None
    last = max(files, key=lambda file: file.date).block or {}
    board: Mapping[str, Any] = last["race"]
    raced = {str(standing["name"]) for standing in board["standings"]}
    ours = [
        block["race"] == board
        or (last.get("journal") is not None and block.get("journal") == last["journal"])
        for block in blocks
    ]
    return board if all(ours) and all(str(block["arm"]) in raced for block in blocks) else None
