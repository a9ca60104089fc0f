"""The columns of every frame that is given back, with their types."""

from __future__ import annotations

from collections.abc import Mapping

from evalbudget.recorded._columns import READINGS, Column, Kind

__all__ = ["COLUMNS", "Column", "Kind"]

_MODEL = Column("model", Kind.TEXT, "that answered")
_WHO = Column("rater", Kind.TEXT, "judge or metric; `panel`: several judges")
_ALLOCATION = Column("allocation", Kind.TEXT, "fixed, phased or adaptive repeats")
_SCORES = Column("readings", Kind.WHOLE, "scores recorded")

_ITEMS = (
    Column("item", Kind.TEXT, "that was asked"),
    _MODEL,
    _WHO,
    Column("category", Kind.TEXT, "of the item"),
    _SCORES,
    Column("mean", Kind.NUMBER, "of what may count, judges' leniency taken out"),
    Column("sd", Kind.NUMBER, "spread of one judge's scores"),
    Column("lower", Kind.NUMBER, "interval that holds for 95% of items; not of panels"),
    Column("upper", Kind.NUMBER, "of the same"),
    Column("cost", Kind.NUMBER, "dollars, where known"),
    _ALLOCATION,
    Column("fixed_repeats", Kind.WHOLE, "first readings bought whatever the scores"),
)

_MODELS = (
    _MODEL,
    _WHO,
    Column("estimate", Kind.NUMBER, "mean score, items and repeats random"),
    Column("stderr", Kind.NUMBER, "its standard error"),
    Column("lower", Kind.NUMBER, "interval of this model alone"),
    Column("upper", Kind.NUMBER, "of the same"),
    Column("all_lower", Kind.NUMBER, "interval for all models at once"),
    Column("all_upper", Kind.NUMBER, "of the same"),
    Column("repeats_stderr", Kind.NUMBER, "standard error, these items given"),
    Column("repeats_lower", Kind.NUMBER, "interval for these items asked again"),
    Column("repeats_upper", Kind.NUMBER, "of the same"),
    Column("items", Kind.WHOLE, "with a score"),
    Column("readings", Kind.WHOLE, "scores behind the estimate"),
    Column("cost", Kind.NUMBER, "readings paid for"),
    Column("usd", Kind.NUMBER, "dollars paid, where known"),
    _ALLOCATION,
)

_JUDGES = (
    Column("rater", Kind.TEXT, "judge or metric"),
    Column("mean", Kind.NUMBER, "of scores bought whatever they were"),
    Column("readings", Kind.WHOLE, "behind the mean"),
    Column("bias", Kind.NUMBER, "deviation from the panel's mean"),
    Column("stderr", Kind.NUMBER, "of the bias"),
    Column("lower", Kind.NUMBER, "interval of this judge alone"),
    Column("upper", Kind.NUMBER, "of the same"),
    Column("all_lower", Kind.NUMBER, "interval for all judges at once"),
    Column("all_upper", Kind.NUMBER, "of the same"),
)

COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "readings": READINGS,
    "items": _ITEMS,
    "models": _MODELS,
    "judges": _JUDGES,
}
"""By the method of :class:`~evalbudget.frames.Scores` that gives the frame."""
