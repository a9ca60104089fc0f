"""Tables that show themselves wherever they are printed, of rows whose fields say how they are shown."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from types import MappingProxyType
from typing import Any, NamedTuple

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text, TextType

from evalbudget._fields import Shown as Shown
from evalbudget._fields import columns_of, decimals
from evalbudget._fields import names as names
from evalbudget._fields import percent as percent
from evalbudget.shown import shown, shown_lines

WIDTH = 80
_CELL = 1000  # characters


class PrintableTable(Table):
    """Renders itself as plain text under ``print`` and at the interactive prompt.

    Names of models and items come from anywhere: a text is shown as it is, brackets too, and what a terminal
    would obey is written out. A :class:`~rich.text.Text` is for its style.
    """

    def add_column(self, header: RenderableType = "", *footer: Any, **more: Any) -> None:
        """As of any table."""
        super().add_column(as_text(header, lines=isinstance(header, str)), *footer, **more)

    def add_row(self, *cells: RenderableType | None, **more: Any) -> None:
        """As of any table."""
        super().add_row(*(None if cell is None else as_text(cell) for cell in cells), **more)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.title = _about(self.title, "table.title")
        self.caption = _about(self.caption, "table.caption")
        yield from super().__rich_console__(console, options)

    def __str__(self) -> str:
        return _plain(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What notebooks show: the same cells as HTML, names escaped."""
        return _as_html(self, plain_text(self.caption or ""))


class NotedTable(PrintableTable):
    """A table with a note below it that is as wide as the terminal, not as the table.

    Attributes:
        note: plain text; empty for none.
    """

    note = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from super().__rich_console__(console, options)
        if self.note:
            yield Text(shown(self.note), style="dim")

    def _repr_html_(self) -> str:
        """As of the table, with the note."""
        return _as_html(self, shown(self.note))


@dataclass(frozen=True, slots=True, repr=False)
class Tables:
    """Several tables, one below the other; prints itself as text.

    Attributes:
        parts: the tables.
    """

    parts: tuple[NotedTable, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, part in enumerate(self.parts):
            if number:
                yield ""
            yield part

    def __str__(self) -> str:
        return _plain(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What notebooks show: one below the other."""
        return "\n".join(part._repr_html_() for part in self.parts)


class Style(NamedTuple):
    """What columns of words take, and columns of numbers."""

    words: Mapping[str, Any]
    numbers: Mapping[str, Any]


WORDS: Mapping[str, Any] = {"overflow": "fold", "min_width": 12}
NOTED = Style(WORDS, {"justify": "right", "no_wrap": True})
PLANNED = Style({}, {"justify": "right"})
REPLAYED = Style({"overflow": "fold"}, {"justify": "right"})


def fill(
    table: PrintableTable,
    rows: Sequence[Any],
    style: Style = NOTED,
    *,
    level: float = 0.95,
    places: int | None = None,
    only: Sequence[str] = (),
    without: Collection[str] = (),
    titles: Mapping[str, str] = MappingProxyType({}),
    parted: str = "",
) -> None:
    """Add columns and cells of dataclasses whose fields say how they are shown.

    Args:
        table: to fill.
        rows: of one class, at least one.
        style: of the columns.
        level: of the intervals, for titles.
        places: decimals of numbers; None for those that show the rows' standard errors.
        only: fields to show, in this order; empty for all, in theirs.
        without: fields to leave out.
        titles: of columns that are called otherwise here, by field.
        parted: field; where it differs from that of the row before, a new section begins.
    """
    known = columns_of(type(rows[0]))
    columns = {
        name: known[name]
        for name in only or known
        if name not in without and (not known[name].optional or any(_has(row, name) for row in rows))
    }
    for name, column in columns.items():
        usual = style.numbers if column.form or column.by else style.words
        table.add_column(
            titles.get(name, column.title).format(level=percent(level)), **(column.more or usual)
        )
    if places is None:
        places = decimals(getattr(row, "standard_error", math.nan) for row in rows)
    for row, last in zip(rows, (rows[0], *rows), strict=False):
        if parted and getattr(row, parted) != getattr(last, parted):
            table.add_section()
        table.add_row(*(column.cell(name, row, places) for name, column in columns.items()))


def _has(row: Any, name: str) -> bool:
    return getattr(row, name) not in (None, "")


def _plain(what: RenderableType) -> str:
    text = StringIO()
    Console(file=text, width=WIDTH, color_system=None).print(what)
    return text.getvalue().rstrip()


def _as_html(table: Table, note: str) -> str:
    sides = [' style="text-align:left"' if column.justify == "left" else "" for column in table.columns]
    head = "".join(
        f"<th{side}>{_escaped(column.header)}</th>" for column, side in zip(table.columns, sides, strict=True)
    )
    rows = zip(*(column.cells for column in table.columns), strict=True)
    lines = [
        "<tr>"
        + "".join(f"<td{side}>{_escaped(cell)}</td>" for cell, side in zip(row, sides, strict=True))
        + "</tr>"
        for row in rows
    ]
    title = _escaped(table.title or "")
    return (
        (f"<h2>{title}</h2>\n" if title else "")
        + f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n'
        + "\n".join(lines)
        + "\n</tbody>\n</table></div>"
        + (f'\n<p class="note">{escape(note)}</p>' if note else "")
    )


def as_text(what: RenderableType, *, lines: bool = False) -> RenderableType:
    """A text as it is, what it holds shown and not obeyed; anything else is itself.

    Args:
        what: to print.
        lines: its line breaks are ours; else they are written out.
    """
    if not isinstance(what, str | Text):
        return what
    told = str(what)
    safe = shown_lines(told) if lines else shown(told, _CELL)
    if isinstance(what, str):
        return Text(safe)
    return what if safe == told else Text(safe, style=what.style)


def plain_text(cell: RenderableType) -> str:
    """What a cell, a head, a title or a caption says, without its style."""
    return shown_lines(str(cell))


def _about(what: TextType | None, style: str) -> Text | None:
    if not what or (isinstance(what, Text) and what.plain == plain_text(what)):
        return what or None
    return Text(plain_text(what), style=what.style if isinstance(what, Text) else style)


def _escaped(cell: RenderableType) -> str:
    return escape(plain_text(cell))
