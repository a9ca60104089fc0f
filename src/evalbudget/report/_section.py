"""One part of a report: frozen numbers, a way to print them, a way to draw them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from evalbudget.report._study import Study
from evalbudget.tables import NotedTable, Tables


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a chart.

    Attributes:
        name: of the row.
        value: where the point is.
        low: lower end of the thick bar; nan for none.
        high: upper end.
        all_low: lower end of the thin bar, the interval that holds for all rows at once; nan for none.
        all_high: upper end.
    """

    name: str
    value: float
    low: float
    high: float
    all_low: float
    all_high: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Points with intervals, one row each, the first at the top.

    Attributes:
        title: above.
        label: of the axis.
        bars: the rows.
        zero: whether to mark zero.
        together: whether the thick bars, too, hold for all rows at once.
    """

    title: str
    label: str
    bars: tuple[Bar, ...]
    zero: bool = False
    together: bool = False


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts in bins.

    Attributes:
        title: above.
        label: of the axis.
        edges: bounds of the bins, ascending, one more than there are bins.
        counts: in each bin.
    """

    title: str
    label: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]


class Section(ABC):
    """A part of the report. Subclasses are frozen dataclasses, registered by ``evalbudget_register_reports``.

    Attributes:
        name: unique; the key in the JSON.
    """

    name: ClassVar[str]

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
        from evalbudget.report._picture import plot

        return plot(self.charts(), ax, level=getattr(self, "level", 0.95))

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return self.table()._repr_html_()
