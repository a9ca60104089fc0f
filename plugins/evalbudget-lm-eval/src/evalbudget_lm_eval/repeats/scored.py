"""What was read of a task's documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evalbudget.repeats.estimates import ItemReadings


class Scored(NamedTuple):
    """One reading.

    Attributes:
        document: its id.
        epoch: ordinal of the repeat, from 0.
        value: the score.
        weight: fixed before it was seen; nan if it was held out, or if none was fixed.
    """

    document: int
    epoch: int
    value: float
    weight: float


def readings_of(scored: Sequence[Scored], documents: Sequence[int]) -> ItemReadings:
    """What was read of these documents, in their order."""
    index = {document: i for i, document in enumerate(documents)}
    return ItemReadings.of(
        [index[one.document] for one in scored],
        [one.epoch for one in scored],
        [one.value for one in scored],
        n_items=len(index),
        weight=[one.weight for one in scored],
    )
