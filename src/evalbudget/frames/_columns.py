"""The columns of every frame that is given back, with their types."""

from __future__ import annotations

from collections.abc import Mapping

from evalbudget.recorded._columns import READINGS, Column, Kind

__all__ = ["COLUMNS", "Column", "Kind"]

_MODEL = Column("model", Kind.TEXT, "that answered")
_WHO = Column("rater", Kind.TEXT, "the judge or metric; `panel` for the mean of several judges")
_ALLOCATION = Column("allocation", Kind.TEXT, "how repeats depended on scores: fixed, weighted, adaptive")
_SCORES = Column("readings", Kind.WHOLE, "scores recorded; those that failed are not counted")

_ITEMS = (
    Column("item", Kind.TEXT, "that was asked"),
    _MODEL,
    _WHO,
    Column("category", Kind.TEXT, "of the item; missing where there is none"),
    _SCORES,
    Column("mean", Kind.NUMBER, "of what may count; of judges, each less its leniency"),
    Column("sd", Kind.NUMBER, "spread (n - 1) of the item's scores; missing below two of one judge"),
    Column("lower", Kind.NUMBER, "holds the item's true score; 95% of items on average; missing for panels"),
    Column("upper", Kind.NUMBER, "of the same interval"),
    Column("cost", Kind.NUMBER, "dollars of the readings with a known cost; missing where none is"),
    _ALLOCATION,
    Column("fixed_repeats", Kind.WHOLE, "first readings that were bought whatever the scores"),
)

_MODELS = (
    _MODEL,
    _WHO,
    Column("estimate", Kind.NUMBER, "mean score, items and repeats random"),
    Column("stderr", Kind.NUMBER, "its standard error"),
    Column("lower", Kind.NUMBER, "of this model's own interval"),
    Column("upper", Kind.NUMBER, "of the same"),
    Column("all_lower", Kind.NUMBER, "of the interval that holds for all models at once"),
    Column("all_upper", Kind.NUMBER, "of the same"),
    Column("repeats_stderr", Kind.NUMBER, "standard error with these items given"),
    Column("repeats_lower", Kind.NUMBER, "of the interval for these items asked again"),
    Column("repeats_upper", Kind.NUMBER, "of the same"),
    Column("items", Kind.WHOLE, "with a score"),
    Column("readings", Kind.WHOLE, "scores behind the estimate"),
    Column("cost", Kind.NUMBER, "readings paid for, failed ones included"),
    Column("usd", Kind.NUMBER, "dollars paid; missing where not known"),
    _ALLOCATION,
)

_JUDGES = (
    Column("rater", Kind.TEXT, "the judge or metric"),
    Column("mean", Kind.NUMBER, "of its scores, as far as they were bought whatever they were"),
    Column("readings", Kind.WHOLE, "behind the mean"),
    Column("bias", Kind.NUMBER, "its deviation from the mean of the panel; missing without one"),
    Column("stderr", Kind.NUMBER, "of the bias"),
    Column("lower", Kind.NUMBER, "of this judge's own interval"),
    Column("upper", Kind.NUMBER, "of the same"),
    Column("all_lower", Kind.NUMBER, "of the interval that holds for all judges at once"),
    Column("all_upper", Kind.NUMBER, "of the same"),
)

COLUMNS: Mapping[str, tuple[Column, ...]] = {
    "readings": READINGS,
    "items": _ITEMS,
    "models": _MODELS,
    "judges": _JUDGES,
}
"""By the method of :class:`~evalbudget.frames.Scores` that gives the frame."""
