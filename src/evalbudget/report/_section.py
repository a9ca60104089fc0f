"""One part of a report: frozen numbers, a way to print them, a way to draw them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from evalbudget.report._charts import Chart, Histogram
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
