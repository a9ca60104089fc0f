"""A plan: tables for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from evalbudget.replay._rows import AsJson
from evalbudget.shown import shown_lines
from evalbudget.tables import PLANNED, PrintableTable, fill


@dataclass(frozen=True, repr=False)
class Plans(AsJson):
    """What each way of spending needs, or reaches.

    Attributes:
        document: what the plans say, in JSON values and floats; ``plans`` are the rows.
        tables: the same for people, one below the other.
    """

    document: Mapping[str, Any]
    tables: tuple[PrintableTable, ...]

    def _told(self) -> Mapping[str, Any]:
        return self.document

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return "\n".join(table._repr_html_() for table in self.tables)

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self.tables))


def table_of(rows: Sequence[Any], caption: str, **more: Any) -> PrintableTable:
    """Plans as a table, one a row, and what to know below; more as of :func:`~evalbudget.tables.fill`."""
    table = PrintableTable(box=None, caption_justify="left")
    fill(table, rows, PLANNED, **more)
    say_below(table, caption)
    return table


def say_below(table: PrintableTable, said: str) -> None:
    """Say one thing more below a table, if there is one."""
    if said:
        table.caption = Text(shown_lines(f"{table.caption}\n{said}" if table.caption else said))
