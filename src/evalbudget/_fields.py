"""How tables show the fields of a dataclass: the title of their column, and their format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, get_type_hints

from evalbudget.budget import Unit, shown_amount

MISSING = "-"
_LARGE = 9999.5
"""From here on numbers have no fewer than five digits before the point."""
_SUSPICIOUS = 20
"""So many scores that are all 0 are no chance."""
NOTHING = 1e-12
"""A standard error up to this is rounding: equal differences prove no interval."""


@dataclass(frozen=True, slots=True)
class Shown:
    """How tables show a field of a dataclass, as in ``Annotated[float, Shown("mean", "p")]``.

    Attributes:
        title: of the column; ``{level}`` stands for the level of the table.
        form: a format as of Python. Of our own: ``p`` for the decimals that the table has (``+p`` with a
            sign, ``e`` with a dash where an error of 0 proves nothing), ``#3`` for three digits that mean
            something, ``~`` for four digits or whole numbers, ``$`` and ``usd`` for dollars with that sign
            and without. Empty for words.
        to: field with the upper end, where this one has the lower end of an interval.
        by: makes the cell of the row, where the field alone does not tell it.
        optional: there is no column where no row has a value.
        more: what columns of tables take, such as ``justify``, where it is not as the style says.
    """

    title: str
    form: str = ""
    to: str = ""
    by: Callable[[Any], str] | None = None
    optional: bool = False
    more: Mapping[str, Any] | None = None

    def cell(self, name: str, row: Any, places: int) -> str:
        """What the row has in this column."""
        if self.by is not None:
            return self.by(row)
        ends = [formatted(getattr(row, field), self.form, places) for field in (name, self.to) if field]
        return MISSING if MISSING in ends else " to ".join(ends)


def columns_of(kind: type) -> Mapping[str, Shown]:
    """How the fields of a class are shown; the others are not."""
    hints = get_type_hints(kind, include_extras=True)
    said = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
    return {name: each for name, found in said.items() for each in found if isinstance(each, Shown)}


def formatted(value: Any, form: str, places: int) -> str:
    """A value as its column shows it; a dash where there is none.

    Args:
        value: of a field.
        form: see :class:`Shown`.
        places: decimals of ``p``.
    """
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return MISSING
    if form.startswith("#"):
        return short(value if isinstance(value, float) else value.mean, int(form[1:]))
    if form == "~":
        form = ",.4g" if abs(value) < _LARGE else ",.0f"
    if form == "e":
        return number(value, places) if value > NOTHING else MISSING
    if form in ("$", "usd"):
        return shown_amount(value, Unit.USD).removeprefix("" if form == "$" else "$")
    form = "" if form == "s" else form
    return f"{value:{form.replace('p', f',.{places}f')}}"


def short(value: float, digits: int) -> str:
    """A number with so many digits that mean something, a whole one where they end before the point."""
    if not math.isfinite(value):
        return MISSING
    whole = abs(value) >= 10**digits - 0.5
    return f"{value:,.0f}" if whole else f"{value:#.{digits}g}".removesuffix(".")


def number(value: float, places: int, *, sign: bool = False) -> str:
    """A number, or a dash where there is none."""
    return formatted(value, "+p" if sign else "p", places)


def span(low: float, high: float, places: int, *, sign: bool = False) -> str:
    """An interval, or a dash where there is none."""
    ends = number(low, places, sign=sign), number(high, places, sign=sign)
    return MISSING if MISSING in ends else " to ".join(ends)


def decimals(errors: Iterable[float]) -> int:
    """Decimals that show two digits of the median of these errors; three where there is none."""
    known = [error for error in errors if math.isfinite(error) and error > NOTHING]
    return max(0, min(6, 1 - math.floor(math.log10(median(known))))) if known else 3


def percent(level: float) -> str:
    """A level as people write it: 95%, 99.9%; what is below 1 is not 100%."""
    value = 100.0 * float(level)
    return f"{value!r}%" if level < 1.0 and f"{value:.10g}" == "100" else f"{value:.10g}%"


def share_of_all(share: float) -> str:
    """In whole percent; some is not 0%, and not all is not 100%."""
    shown = f"{share:.0%}"
    if 0.0 < share < 1.0 and shown in ("0%", "100%"):
        return "under 1%" if shown == "0%" else "over 99%"
    return shown


def all_zero(count: int, scores: Iterable[float]) -> str:
    """What to look at where every score is 0; empty where one is not, or where there are few.

    Args:
        count: of scores.
        scores: all of them, or means of them.
    """
    if count < _SUSPICIOUS or any(scores):
        return ""
    told = f"{count:,} of {count:,} scores are 0"
    return f"{told}: look at some answers first, since a scorer that cannot read them says the same."


def names(what: Iterable[str], most: int = 5) -> str:
    """A list for a sentence, cut after some."""
    listed = list(what)
    rest = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {rest:,} more" if rest > 0 else "")
