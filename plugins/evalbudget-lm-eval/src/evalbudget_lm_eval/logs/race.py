"""Logs that are all of one race, or of one gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalbudget_lm_eval.host.logfiles import SamplesFile


def last_block_of(files: Sequence[SamplesFile]) -> Mapping[str, Any] | None:
    """What the race or gate that all of these are of said when it ended last; None if they are of none.

    A race that went on writes new files of those whom it asked again, and leaves those of the others.
    """
    blocks = [file.block or {} for file in files]
    if not blocks or not all(isinstance(block.get("race"), Mapping) for block in blocks):
        return None
    last: Mapping[str, Any] = max(files, key=lambda file: file.date).block or {}
    board = last["race"]
    raced = {str(standing["name"]) for standing in board["standings"]}
    ours = [
        block["race"] == board
        or (last.get("journal") is not None and block.get("journal") == last["journal"])
        for block in blocks
    ]
    return last if all(ours) and all(str(block["arm"]) in raced for block in blocks) else None
