"""A rich table that shows itself wherever it is printed."""

from __future__ import annotations

from io import StringIO

from rich.console import Console
from rich.table import Table

WIDTH = 80


class PrintableTable(Table):
    """Renders itself as plain text under ``print`` and at the interactive prompt."""

    def __str__(self) -> str:
        text = StringIO()
        Console(file=text, width=WIDTH, color_system=None).print(self)
        return text.getvalue().rstrip()

    __repr__ = __str__
