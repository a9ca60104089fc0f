"""Tables that show themselves wherever they are printed."""

from __future__ import annotations

from dataclasses import dataclass
from io import StringIO

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

WIDTH = 80


class PrintableTable(Table):
    """Renders itself as plain text under ``print`` and at the interactive prompt."""

    def __str__(self) -> str:
        return _plain(self)

    __repr__ = __str__


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


def _plain(what: RenderableType) -> str:
    text = StringIO()
    Console(file=text, width=WIDTH, color_system=None).print(what)
    return text.getvalue().rstrip()
