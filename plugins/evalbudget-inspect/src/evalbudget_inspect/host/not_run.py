"""Marks of samples that were not run: in their metadata, which the host's logs keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalbudget_inspect.host.scoring import METADATA

NOT_RUN_AGAIN = "failed before and the budget is used up: not run again"
NOT_RUN = "the budget is used up by what a killed run had begun: not run"
NOT_PAID = "the budget is used up by what earlier attempts paid for: not run"
NOT_BEGUN = "cut off while it waited for its turn: not run"


def refuse(metadata: dict[str, Any], why: str = NOT_RUN_AGAIN) -> None:
    """Mark a cell, in its sample's metadata, as not run: neither solved nor scored, and free of charge."""
    metadata[METADATA] = why


def begin(metadata: dict[str, Any]) -> None:
    """Take the mark away: the cell is run now."""
    metadata.pop(METADATA, None)


def is_refused(metadata: Mapping[str, Any]) -> bool:
    """Whether a cell is marked so."""
    return metadata.get(METADATA) in (NOT_RUN_AGAIN, NOT_RUN, NOT_PAID, NOT_BEGUN)
