"""Tables that show themselves wherever they are printed."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

WIDTH = 80
_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
_CONTROLS |= dict.fromkeys(range(127, 160), 0xFFFD)
"""What a terminal would obey, and the characters that show it."""


class PrintableTable(Table):
    """Renders itself as plain text under ``print`` and at the interactive prompt."""

    def add_row(self, *cells: RenderableType | None, **more: Any) -> None:
        """Names of models and items come from anywhere: what they hold is shown, not obeyed."""
        super().add_row(*map(_shown, cells), **more)

    def __str__(self) -> str:
        return _plain(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """What notebooks show: the same cells as HTML, names escaped."""
        return _as_html(self, str(self.caption or ""))


class NotedTable(PrintableTable):
    """A table with a note below it that is as wide as the terminal, not as the table.

    Attributes:
        note: plain text; empty for none.
    """

    note = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from super().__rich_console__(console, options)
        if self.note:
            yield Text(self.note, style="dim")

    def _repr_html_(self) -> str:
        """As of the table, with the note."""
        return _as_html(self, self.note)


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


def obeying_nothing(text: str) -> str:
    """The text with characters that show what a terminal would obey."""
    return text.translate(_CONTROLS)


def _shown(cell: RenderableType | None) -> RenderableType | None:
    if isinstance(cell, str):
        return obeying_nothing(cell)
    if isinstance(cell, Text):
        cell.plain = obeying_nothing(cell.plain)  # as long as it was, so that its styles stay in place
    return cell


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


def plain_text(cell: RenderableType) -> str:
    """What a cell says, without its style."""
    return cell.plain if isinstance(cell, Text) else Text.from_markup(str(cell)).plain


def _escaped(cell: RenderableType) -> str:
    return escape(plain_text(cell))
