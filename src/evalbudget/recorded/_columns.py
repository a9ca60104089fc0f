"""The columns of a long table of scores, one reading per row, the same in every format."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a column holds."""

    TEXT = "text"
    NUMBER = "number"
    WHOLE = "whole"
    FLAG = "flag"


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
    Column("rater", Kind.TEXT, "judge or metric"),
    Column("repeat", Kind.WHOLE, "number of the answer: one for all its raters"),
    Column("score", Kind.NUMBER, "missing if the reading failed; needed"),
    Column("cost", Kind.NUMBER, "of the reading, in dollars"),
    Column("category", Kind.TEXT, "of the item"),
    Column("task", Kind.TEXT, "what was asked of models"),
    Column("version", Kind.TEXT, "of the task"),
    Column("one_generation", Kind.FLAG, "repeats score one answer again"),
    Column("one_measure", Kind.FLAG, "raters are judges, not metrics"),
    Column("failed", Kind.FLAG, "true unless said, where there is no score"),
    Column("not_applicable", Kind.FLAG, "no score applies"),
    Column("complete", Kind.FLAG, "rows of the model lack nothing it was asked"),
    Column("better", Kind.TEXT, "`higher`, `lower`, `unknown`; or `higher_is_better`"),
    Column("score_low", Kind.NUMBER, "smallest that the rater can give"),
    Column("score_high", Kind.NUMBER, "largest"),
    Column("digest", Kind.TEXT, "of what was asked"),
    Column("cluster", Kind.TEXT, "of items sampled together"),
    Column("settings", Kind.TEXT, "of the model, as JSON"),
    Column("epoch", Kind.WHOLE, "place among the item's readings, from 0"),
    Column("phase", Kind.NUMBER, "it was bought in, from 0"),
    Column("allocation", Kind.TEXT, "fixed, phased or adaptive repeats"),
    Column("fixed_repeats", Kind.WHOLE, "first readings bought whatever the scores"),
    Column("model_cost", Kind.NUMBER, "readings of the model paid for"),
    Column("model_usd", Kind.NUMBER, "dollars paid for the model"),
    Column("phase_sizes", Kind.TEXT, "answers per item in each phase"),
    Column("by_category", Kind.FLAG, "categories are tasks of a group"),
    Column("stratum", Kind.NUMBER, "the item was drawn from"),
    Column("stratum_items", Kind.NUMBER, "in the stratum"),
)
"""Of a table of readings. All but ``item`` and ``score`` may be left out."""

HIGHER = "higher_is_better"
"""A column of others, read in place of ``better``."""

NAMES = (HIGHER, *(column.name for column in READINGS))

TEXTS = (HIGHER, "repeat", *(column.name for column in READINGS if column.kind is Kind.TEXT))
"""Those read as words; a repeat may go by any label."""

TRUTHS = ("score", *(column.name for column in READINGS if column.kind is Kind.FLAG))
"""Those that may hold true and false."""

OFTEN_OTHERS = ("failed", "not_applicable", "complete", "score_low", "score_high")
"""Numbers whose names tables of others have, too; read only where they are what they are here."""

FLAGS = {"true": 1.0, "false": 0.0}

ABSENT = frozenset({"na", "n/a", "#n/a", "#na", "<na>", "nan", "null", "none"})
"""What programs write for a number that is missing, in small letters."""

FILLED = ("item", "model", "rater", "repeat", "category")
"""What no row may leave empty, if another row has it."""

OTHER_NAMES = {"judge": "rater", "metric": "rater"}
"""Names of a column under which tables of others have it, where they do not have our own."""
