"""The report as a picture; the only part that needs matplotlib, which is imported when it is drawn."""

from __future__ import annotations

import warnings
from io import BytesIO
from typing import TYPE_CHECKING, Any

from evalbudget.errors import InvalidInputError
from evalbudget.report._axes import HISTOGRAM, ROW, WIDTH, draw_chart, require_matplotlib
from evalbudget.report._charts import Histogram

if TYPE_CHECKING:
    from evalbudget.report._report import Report

FORMATS = ("png", "svg")


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
    heights = [HISTOGRAM if isinstance(chart, Histogram) else 1.0 + ROW * len(chart.bars) for chart in charts]
    # the same report gives the same bytes, and text in an svg is text
    with (
        rc_context({"svg.hashsalt": "evalbudget", "svg.fonttype": "none", "font.size": 9}),
        warnings.catch_warnings(),
    ):
        # names are in all scripts of the world; what the font lacks is drawn as a box
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(WIDTH, sum(heights) + 0.3), layout="constrained")
        axes = figure.subplots(len(charts), 1, squeeze=False, height_ratios=heights)[:, 0]
        for axis, chart in zip(axes, charts, strict=True):
            draw_chart(axis, chart, report.level)
        out = BytesIO()
        metadata: dict[str, Any] = {"Software": None} if image == "png" else {"Date": None, "Creator": None}
        figure.savefig(out, format=image, dpi=130, metadata=metadata)
    return out.getvalue()
