"""What a picture shows: frozen numbers."""

from __future__ import annotations

from dataclasses import dataclass


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
        marked: name of the row that stands out; empty for none.
        of: how many rows the intervals hold for at once, where not all of them are drawn; 0 for those drawn.
    """

    title: str
    label: str
    bars: tuple[Bar, ...]
    zero: bool = False
    together: bool = False
    marked: str = ""
    of: int = 0

    @property
    def all_rows(self) -> int:
        """How many rows the intervals hold for at once."""
        return self.of or len(self.bars)


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
