"""A scorer's metadata that fills itself in when the host copies it into results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


class LiveMetadata(dict[str, Any]):
    """The host deep-copies a scorer's metadata each time it computes metrics; the copy describes the run.

    Args:
        asked: what was asked for, known before the run.
        told: called at every copy for what there is to tell of the run by then.
    """

    def __init__(self, asked: Mapping[str, Any], told: Callable[[], Mapping[str, Any]]) -> None:
        super().__init__(asked)
        self._told = told

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {**self, **self._told()}
