"""Charts on axes of matplotlib, which is imported when something is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evalbudget._fields import percent
from evalbudget.errors import InvalidInputError
from evalbudget.report._charts import Chart, Histogram
from evalbudget.shown import shown

ROW = 0.24
"""Height of a bar, in inches."""
WIDTH = 8.0
HISTOGRAM = 1.5
_INK, _THIN, _GREY = "#0b6bb5", "#8fbce0", "#666666"
_LONGEST = 44
MOST = 60
"""Bars that one picture on somebody's axes has."""


def require_matplotlib() -> None:
    """Refuse before the work rather than after it.

    Raises:
        InvalidInputError: matplotlib is not installed.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as ex:
        raise InvalidInputError(
            "pictures need matplotlib, which is not installed: pip install 'evalbudget[report]'"
        ) from ex


def plot(charts: Sequence[Chart | Histogram], ax: Any, *, level: float) -> Any:
    """The first chart on axes; of more than 60 bars the first ones.

    Args:
        charts: that there are.
        ax: axes of matplotlib; None for new ones.
        level: of the intervals.

    Raises:
        InvalidInputError: there is none, or matplotlib is not installed.
    """
    if not charts:
        raise InvalidInputError("there is nothing to draw here; see .table()")
    require_matplotlib()
    chart = charts[0]
    if ax is None:
        from matplotlib import pyplot

        rows = len(chart.bars[:MOST]) if isinstance(chart, Chart) else 0
        height = 1.0 + ROW * rows if rows else 2 * HISTOGRAM
        ax = pyplot.subplots(figsize=(WIDTH, height), layout="constrained")[1]
    if isinstance(chart, Chart) and len(chart.bars) > MOST:
        title = f"{chart.title} (the first {MOST} of {len(chart.bars):,})"
        chart = replace(chart, title=title, bars=chart.bars[:MOST], of=chart.all_rows)
    draw_chart(ax, chart, level)
    return ax


def draw_chart(axis: Any, chart: Chart | Histogram, level: float) -> None:
    """A title, and what the chart shows.

    Args:
        axis: where to draw.
        chart: what to draw.
        level: of its intervals.
    """
    axis.set_title(_text(chart.title), loc="left", fontweight="bold", fontsize=10)
    axis.set_xlabel(_text(chart.label))
    if isinstance(chart, Histogram):
        _bins(axis, chart)
    else:
        _intervals(axis, chart, level)


def _intervals(axis: Any, chart: Chart, level: float) -> None:
    """Points, thick and thin bars for the two intervals."""
    bars = chart.bars
    rows = range(len(bars))
    if chart.zero:
        axis.axvline(0.0, color=_GREY, linewidth=0.8, zorder=0)
    several = len(bars) > 1
    alone, all_of_them = f"{percent(level)} interval", f"{percent(level)}, all {chart.all_rows:,} at once"
    if several:
        alone = all_of_them if chart.together else f"{percent(level)}, each by itself"
    if several and not chart.together:
        axis.hlines(
            rows,
            [bar.all_low for bar in bars],
            [bar.all_high for bar in bars],
            color=_THIN,
            linewidth=1.6,
            label=all_of_them,
        )
    axis.hlines(
        rows,
        [bar.low for bar in bars],
        [bar.high for bar in bars],
        color=_INK,
        linewidth=3.2,
        label=alone,
    )
    axis.plot([bar.value for bar in bars], rows, "o", color="white", mec=_INK, ms=4.5, zorder=3)
    axis.set_yticks(list(rows), [_text(bar.name) for bar in bars])
    axis.set_ylim(len(bars) - 0.4, -0.6)
    axis.grid(axis="x", alpha=0.25)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)
    axis.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)


def _bins(axis: Any, chart: Histogram) -> None:
    """Counts in bins."""
    axis.bar(
        chart.edges[:-1], chart.counts, np.diff(chart.edges), align="edge", color=_INK, edgecolor="white"
    )
    axis.set_ylabel("items")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.25)


def _text(name: str) -> str:
    """Short enough for a label, and never taken for a formula."""
    name = shown(name)
    short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    return short.replace("$", r"\$")
