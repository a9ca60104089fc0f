"""Charts as SVG in the colours of the page around them, and in words for screen readers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

from evalbudget.report._charts import Bar, Chart, Histogram
from evalbudget.tables import obeying_nothing

MOST = 60
"""Bars of one chart; of more the first ones are drawn."""

_WIDTH, _ROW, _FOOT = 720, 22, 44
_LEFT, _RIGHT = 232, 16
_HEIGHT = 150  # of a histogram's bars
_LONGEST = 30
_TICKS = 6


def svg(chart: Chart | Histogram, level: float, key: str) -> str:
    """One chart, its text in the font and the colour of the page (``currentColor``, ``--accent``).

    Args:
        chart: what to draw.
        level: of the intervals.
        key: unique in the page; ids begin with it.
    """
    if isinstance(chart, Histogram):
        return _histogram(chart, key)
    return _intervals(chart, level, key)


def legend(chart: Chart | Histogram, level: float) -> str:
    """What the marks mean, in words; empty where there is nothing to tell apart."""
    if isinstance(chart, Histogram):
        return ""
    n = len(chart.bars)
    rest = f" The first {MOST} of {n:,}." if n > MOST else ""
    if n == 1 or chart.together:
        what = f"{level:.0%} interval" + (f", all {n:,} at once" if n > 1 else "")
        return f"Point: estimate. Bar: {what}.{rest}"
    each = f"Thick bar: {level:.0%} interval, each by itself; thin bar: all {n:,} at once."
    return f"Point: estimate. {each}{rest}"


def _intervals(chart: Chart, level: float, key: str) -> str:
    bars = chart.bars[:MOST]
    low, high = _range(bars, zero=chart.zero)
    ticks = _ticks(low, high)
    bottom = _ROW * len(bars) + 8

    def x(value: float) -> float:
        return _LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    parts = []
    for tick in ticks:
        strong = chart.zero and tick == 0.0
        parts.append(_line(x(tick), 0, x(tick), bottom, "zero" if strong else "grid"))
        parts.append(_text(x(tick), bottom + 16, f"{tick:.6g}", "middle"))
    parts.append(_text((_LEFT + _WIDTH) / 2, bottom + 36, chart.label, "middle"))
    for number, bar in enumerate(bars):
        y = _ROW * (number + 0.5) + 4
        parts.append(_text(_LEFT - 10, y + 4.5, _short(bar.name), "end"))
        spans = [] if chart.together else [(bar.all_low, bar.all_high, "thin")]
        for first, last, name in [*spans, (bar.low, bar.high, "thick")]:
            if math.isfinite(first) and math.isfinite(last):
                parts.append(_line(x(first), y, x(last), y, name))
        if math.isfinite(bar.value):
            parts.append(f'<circle class="point" cx="{x(bar.value):.1f}" cy="{y:.1f}" r="4.5"/>')
    told = f"{len(bars)} rows, the first at the top. " + " ".join(map(_told, bars[:12]))
    told += " The table below has all numbers." if len(bars) > 12 else ""
    return _element(chart.title, f"{chart.label}. {told}", bottom + _FOOT, key, parts)


def _histogram(chart: Histogram, key: str) -> str:
    most = max(chart.counts, default=0) or 1
    low, high = chart.edges[0], chart.edges[-1]
    width = (high - low) or 1.0

    def x(value: float) -> float:
        return _LEFT + (value - low) / width * (_WIDTH - _LEFT - _RIGHT)

    parts = []
    for start, end, count in zip(chart.edges, chart.edges[1:], chart.counts, strict=False):
        tall = _HEIGHT * count / most
        left, right = (x(start), x(end)) if end > start else (_LEFT, _WIDTH - _RIGHT)
        parts.append(
            f'<rect class="bin" x="{left + 1:.1f}" y="{_HEIGHT - tall + 18:.1f}" '
            f'width="{max(right - left - 2, 1):.1f}" height="{tall:.1f}"/>'
        )
        if count:
            parts.append(_text((left + right) / 2, _HEIGHT - tall + 13, f"{count:,}", "middle"))
    bottom = _HEIGHT + 18
    parts.append(_line(_LEFT, bottom, _WIDTH - _RIGHT, bottom, "zero"))
    parts += [_text(x(edge), bottom + 16, f"{edge:.3g}", "middle") for edge in chart.edges]
    parts.append(_text((_LEFT + _WIDTH) / 2, bottom + 36, chart.label, "middle"))
    parts.append(_text(_LEFT - 10, 24, "items", "end"))
    bins = zip(chart.edges, chart.edges[1:], chart.counts, strict=False)
    told = " ".join(f"{a:.3g} to {b:.3g}: {n:,}." for a, b, n in bins)
    return _element(chart.title, f"Items by {chart.label}. {told}", bottom + _FOOT, key, parts)


def _element(title: str, told: str, height: float, key: str, parts: Iterable[str]) -> str:
    name = escape(obeying_nothing(title or "chart"))
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-labelledby="{key}-title {key}-desc">\n'
        f'<title id="{key}-title">{name}</title>\n'
        f'<desc id="{key}-desc">{escape(obeying_nothing(told))}</desc>\n' + "\n".join(parts) + "\n</svg>"
    )


def _range(bars: Iterable[Bar], *, zero: bool) -> tuple[float, float]:
    ends = [v for b in bars for v in (b.value, b.low, b.high, b.all_low, b.all_high) if math.isfinite(v)]
    ends += [0.0] if zero or not ends else []
    low, high = min(ends), max(ends)
    room = 0.03 * (high - low) or 0.5 * abs(high) or 1.0
    return low - room, high + room


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers within the range, 1, 2 or 5 times a power of ten apart."""
    raw = (high - low) / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1.0, 2.0, 5.0, 10.0) if power * m >= raw * (1.0 - 1e-9))
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _told(bar: Bar) -> str:
    span = f", {bar.low:.4g} to {bar.high:.4g}" if math.isfinite(bar.low) else ", no interval"
    return f"{_short(bar.name)}: {bar.value:.4g}{span}."


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _line(x1: float, y1: float, x2: float, y2: float, name: str) -> str:
    return f'<line class="{name}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(obeying_nothing(text))}</text>'
