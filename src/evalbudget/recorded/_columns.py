"""The columns of a long table of scores, one reading per row, the same in every format."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    NUMBER = "number"
    WHOLE = "whole number"
    FLAG = "true or false"


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: of it.
        kind: what it holds.
        told: what that is, for the documents.
    """

    name: str
    kind: Kind
    told: str


NEEDED = ("item", "score")

READINGS: tuple[Column, ...] = (
    Column("item", Kind.TEXT, "that was asked; needed"),
    Column("model", Kind.TEXT, "that answered"),
    Column("rater", Kind.TEXT, "who scored: a judge, or a metric"),
    Column(
        "repeat", Kind.WHOLE, "tells the readings of a cell apart; raters of one answer have the same number"
    ),
    Column("score", Kind.NUMBER, "missing where the reading failed; needed"),
    Column("cost", Kind.NUMBER, "of the reading in dollars; missing where it is not known"),
    Column("category", Kind.TEXT, "of the item; in every row or in none"),
    Column("task", Kind.TEXT, "that the scores are of"),
    Column("version", Kind.TEXT, "of the task"),
    Column("epoch", Kind.WHOLE, "place of the reading among its item's, from 0"),
    Column(
        "weight",
        Kind.NUMBER,
        "of the reading in its item's mean, if weights were fixed; missing if held out",
    ),
    Column(
        "allocation", Kind.TEXT, "how a model's repeats depended on its scores: fixed, weighted, adaptive"
    ),
    Column("fixed_repeats", Kind.WHOLE, "first readings of an item that were bought whatever the scores"),
    Column("model_cost", Kind.NUMBER, "readings of the model that were paid for, failed ones included"),
    Column("model_usd", Kind.NUMBER, "dollars paid for the model in all"),
    Column("one_generation", Kind.FLAG, "repeats are scores of one answer again"),
    Column("one_measure", Kind.FLAG, "raters are judges of the same thing, not metrics"),
)
"""Of a table of readings. All but ``item`` and ``score`` may be left out."""

NAMES = tuple(column.name for column in READINGS)

TEXTS = tuple(column.name for column in READINGS if column.kind is Kind.TEXT or column.name == "repeat")
"""Those read as words; a repeat may go by any label."""

FILLED = ("item", "model", "rater", "repeat", "category")
"""What no row may leave empty, if another row has it."""
