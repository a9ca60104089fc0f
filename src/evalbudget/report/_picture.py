"""The report as a picture; the only part that needs matplotlib, which is imported when it is drawn."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from evalbudget.errors import InvalidInputError
from evalbudget.report._section import Chart, Histogram
from evalbudget.tables import obeying_nothing

if TYPE_CHECKING:
    from evalbudget.report._report import Report

FORMATS = ("png", "svg")
_ROW = 0.24  # inches
_WIDTH = 8.0
_HISTOGRAM = 1.5
_INK, _THIN, _GREY = "#0b6bb5", "#8fbce0", "#666666"
_LONGEST = 44


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


def draw(report: Report, image: str = "png") -> bytes:
    """Every chart of a report, one below the other: points, thick and thin bars for the two intervals.

    Args:
        report: what to draw.
        image: png or svg.

    Raises:
        InvalidInputError: another format, or matplotlib is not installed.
    """
    if image not in FORMATS:
        raise InvalidInputError(f"pictures are {' or '.join(FORMATS)}, not {image!r}")
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    charts = report.charts()
    heights = [
        _HISTOGRAM if isinstance(chart, Histogram) else 1.0 + _ROW * len(chart.bars) for chart in charts
    ]
    # the same report gives the same bytes, and text in an svg is text
    with (
        rc_context({"svg.hashsalt": "evalbudget", "svg.fonttype": "none", "font.size": 9}),
        warnings.catch_warnings(),
    ):
        # names are in all scripts of the world; what the font lacks is drawn as a box
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(_WIDTH, sum(heights) + 0.3), layout="constrained")
        axes = figure.subplots(len(charts), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axis, chart in zip(axes, charts, strict=True):
            if isinstance(chart, Histogram):
                _draw_histogram(axis, chart)
            else:
                _draw(axis, chart, report.level)
        out = BytesIO()
        metadata: dict[str, Any] = {"Software": None} if image == "png" else {"Date": None, "Creator": None}
        figure.savefig(out, format=image, dpi=130, metadata=metadata)
    return out.getvalue()


MOST = 60
"""Bars that one picture on somebody's axes has."""


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
        height = 1.0 + _ROW * rows if rows else 2 * _HISTOGRAM
        ax = pyplot.subplots(figsize=(_WIDTH, height), layout="constrained")[1]
    if isinstance(chart, Histogram):
        _draw_histogram(ax, chart)
        return ax
    if len(chart.bars) > MOST:
        title = f"{chart.title} (the first {MOST} of {len(chart.bars):,})"
        chart = replace(chart, title=title, bars=chart.bars[:MOST])
    _draw(ax, chart, level)
    return ax


def _draw(axis: Any, chart: Chart, level: float) -> None:
    bars = chart.bars
    rows = range(len(bars))
    if chart.zero:
        axis.axvline(0.0, color=_GREY, linewidth=0.8, zorder=0)
    several = len(bars) > 1
    alone, all_of_them = f"{level:.0%} interval", f"{level:.0%}, all {len(bars)} at once"
    if several:
        alone = all_of_them if chart.together else f"{level:.0%}, each by itself"
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
    axis.set_title(_text(chart.title), loc="left", fontweight="bold", fontsize=10)
    axis.set_xlabel(_text(chart.label))
    axis.grid(axis="x", alpha=0.25)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)
    axis.legend(frameon=False, fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)


def _draw_histogram(axis: Any, chart: Histogram) -> None:
    axis.set_title(_text(chart.title), loc="left", fontweight="bold", fontsize=10)
    axis.bar(
        chart.edges[:-1], chart.counts, np.diff(chart.edges), align="edge", color=_INK, edgecolor="white"
    )
    axis.set_xlabel(_text(chart.label))
    axis.set_ylabel("items")
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.25)


def _text(name: str) -> str:
    """Short enough for a label, and never taken for a formula."""
    name = obeying_nothing(name)
    short = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
    return short.replace("$", r"\$")
