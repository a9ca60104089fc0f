"""One part of a report: frozen numbers, a way to print them, a way to draw them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Self

from evalbudget._fields import decimals
from evalbudget.report._charts import Chart, Histogram
from evalbudget.report._numbers import table_of
from evalbudget.report._study import Study
from evalbudget.tables import NotedTable, Tables


class Section(ABC):
    """A part of the report. Subclasses are frozen dataclasses, registered by ``evalbudget_register_reports``.

    Attributes:
        name: unique; the key in the JSON.
        title: heading on a web page; empty for the name in words.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""

    @property
    def heading(self) -> str:
        """The title, or the name in words."""
        return self.title or self.name.replace("_", " ").capitalize()

    @classmethod
    @abstractmethod
    def of(cls, study: Study) -> Self | None:
        """What there is to say; None if the study has nothing for this section.

        Raises:
            InvalidInferenceError: what would be said would be wrong.
        """

    @abstractmethod
    def tables(self) -> tuple[NotedTable, ...]:
        """What a terminal shows; fits 80 columns unless names are long."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """JSON values and floats; nan and infinities become null."""

    def charts(self) -> tuple[Chart | Histogram, ...]:
        """What a picture shows of it."""
        return ()

    def about_model(self, model: str) -> tuple[NotedTable, ...]:
        """What it says of one model, for a page about it; cells below ``model`` and ``judge`` become links.

        Args:
            model: one of the report's.
        """
        return ()

    def model_charts(self, model: str) -> tuple[Chart | Histogram, ...]:
        """What a picture shows of one model, above its tables.

        Args:
            model: one of the report's.
        """
        return ()

    def about_judge(self, judge: str) -> tuple[NotedTable, ...]:
        """What it says of one judge, for a page about it.

        Args:
            judge: one of the report's raters, where they are a panel.
        """
        return ()

    def page_tables(self) -> tuple[NotedTable, ...]:
        """What a web page shows; the same as a terminal, unless there is more to show where there is room."""
        return self.tables()

    def table(self) -> Tables:
        """The tables, one below the other; it also prints itself as text."""
        return Tables(self.tables())

    def plot(self, ax: Any = None) -> Any:
        """Its first picture on axes of matplotlib.

        Args:
            ax: where to draw; None for axes of their own.

        Returns:
            The axes.

        Raises:
            InvalidInputError: it has no picture, or matplotlib is not installed.
        """
        from evalbudget.report._axes import plot

        return plot(self.charts(), ax, level=getattr(self, "level", 0.95))

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return self.table()._repr_html_()


class TableSection(Section):
    """A section that is a table of rows, whose fields say how they are shown.

    Attributes:
        caption: title of the table.
        rows: of one class.
    """

    caption: ClassVar[str]
    rows: Sequence[Any]

    @property
    @abstractmethod
    def label(self) -> str:
        """What the columns mean, and exactly what intervals claim."""

    def tables(self) -> tuple[NotedTable, ...]:
        """One table."""
        return (self._table(self.rows),)

    def _table(self, rows: Sequence[Any], **more: Any) -> NotedTable:
        """Some of the rows, with the decimals of all of them; more as of :func:`evalbudget.tables.fill`."""
        if "places" not in more:
            more["places"] = decimals(getattr(row, "standard_error", 0.0) for row in self.rows)
        level = getattr(self, "level", 0.95)
        return table_of(rows, self.caption, more.pop("note", self.label), level=level, **more)

    def _of_judge(self, judge: str) -> tuple[NotedTable, ...]:
        """The rows of one judge."""
        rows = [row for row in self.rows if row.judge == judge]
        return (self._table(rows),) if rows else ()

    def to_dict(self) -> dict[str, Any]:
        """Label and rows."""
        return {"label": self.label, "rows": [asdict(row) for row in self.rows]}
