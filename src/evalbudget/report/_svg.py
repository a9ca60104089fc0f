"""Charts as SVG in the colours of the page around them, for wide and for narrow screens, and in words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from evalbudget._fields import percent
from evalbudget.report._charts import Bar, Chart, Histogram
from evalbudget.shown import shown, shown_html

MOST = 60
"""Bars of one chart; of more the first ones are drawn."""

_FOOT = 44
_HEIGHT = 150  # of a histogram's bars
_LONGEST = 30
_TICKS = 6


@dataclass(frozen=True, slots=True)
class _Frame:
    """Sizes in units of the picture, which are pixels where there is room for them.

    Attributes:
        name: class of the element; the page shows one of them.
        width: of the whole.
        left: where the scale begins.
        right: what is free behind it.
        row: from one bar to the next.
        above: height of a name that stands above its bar; 0 for names on the left.
        every: how many bins of a histogram have one number at their edges.
    """

    name: str
    width: int
    left: int
    right: int
    row: int
    above: int
    every: int

    @property
    def middle(self) -> float:
        return (self.left + self.width - self.right) / 2

    def at(self, share: float) -> float:
        """Where a share of the scale is."""
        return self.left + share * (self.width - self.left - self.right)


_FRAMES = (_Frame("broad", 720, 232, 16, 22, 0, 1), _Frame("narrow", 360, 20, 20, 36, 16, 2))


def svg(chart: Chart | Histogram, key: str) -> str:
    """One chart twice, for wide and for narrow screens, of which the page's style shows one.

    Its text is in the font and the colour of the page (``currentColor``, ``--accent``).

    Args:
        chart: what to draw.
        key: unique in the page; ids begin with it.
    """
    drawn = []
    for frame in _FRAMES:
        own = f"{key}-{frame.name}"
        if isinstance(chart, Histogram):
            drawn.append(_histogram(chart, own, frame))
        else:
            drawn.append(_intervals(chart, own, frame))
    return "\n".join(drawn)


def legend(chart: Chart | Histogram, level: float) -> str:
    """What the marks mean, in words; empty where there is nothing to tell apart."""
    if isinstance(chart, Histogram):
        return ""
    n, drawn = chart.all_rows, min(len(chart.bars), MOST)
    rest = f" The first {MOST} of {n:,}." if len(chart.bars) > MOST else ""
    rest += f" Filled point: {_short(chart.marked)}." if chart.marked and drawn > 1 else ""
    if n == 1 or chart.together:
        what = f"{percent(level)} interval" + (f", all {n:,} at once" if n > 1 else "")
        return f"Point: estimate. Bar: {what}.{rest}"
    each = f"Thick bar: {percent(level)} interval, each by itself; thin bar: all {n:,} at once."
    return f"Point: estimate. {each}{rest}"


def _intervals(chart: Chart, key: str, frame: _Frame) -> str:
    bars = chart.bars[:MOST]
    low, high = _range(bars, zero=chart.zero)
    bottom = frame.row * len(bars) + 8

    def x(value: float) -> float:
        return frame.at((value - low) / (high - low))

    parts = []
    for tick in _ticks(low, high):
        strong = chart.zero and tick == 0.0
        parts.append(_line(x(tick), 0, x(tick), bottom, "zero" if strong else "grid"))
        parts.append(_text(x(tick), bottom + 16, f"{tick:.6g}", "middle"))
    parts.append(_text(frame.middle, bottom + 36, chart.label, "middle"))
    for number, bar in enumerate(bars):
        own = "marked" if bar.name == chart.marked and len(bars) > 1 else ""
        top = frame.row * number + 4
        y = top + (frame.above + 8 if frame.above else frame.row / 2)
        if frame.above:
            parts.append(_text(0, top + frame.above - 3, _short(bar.name), "start", own))
        else:
            parts.append(_text(frame.left - 10, y + 4.5, _short(bar.name), "end", own))
        spans = [] if chart.together else [(bar.all_low, bar.all_high, "thin")]
        for first, last, name in [*spans, (bar.low, bar.high, "thick")]:
            if math.isfinite(first) and math.isfinite(last):
                parts.append(_line(x(first), y, x(last), y, name))
        if math.isfinite(bar.value):
            kind, size = (own, 6.0) if own else ("point", 4.5)
            parts.append(f'<circle class="{kind}" cx="{x(bar.value):.1f}" cy="{y:.1f}" r="{size}"/>')
    told = f"{len(bars)} rows, the first at the top. " + " ".join(map(_told, bars[:12]))
    told += " The table below has all numbers." if len(bars) > 12 else ""
    return _element(chart.title, f"{chart.label}. {told}", bottom + _FOOT, key, frame, parts)


def _histogram(chart: Histogram, key: str, frame: _Frame) -> str:
    most = max(chart.counts, default=0) or 1
    low, high = chart.edges[0], chart.edges[-1]
    width = (high - low) or 1.0

    def x(value: float) -> float:
        return frame.at((value - low) / width)

    parts = []
    for start, end, count in zip(chart.edges, chart.edges[1:], chart.counts, strict=False):
        tall = _HEIGHT * count / most
        left, right = (x(start), x(end)) if end > start else (frame.at(0.0), frame.at(1.0))
        parts.append(
            f'<rect class="bin" x="{left + 1:.1f}" y="{_HEIGHT - tall + 18:.1f}" '
            f'width="{max(right - left - 2, 1):.1f}" height="{tall:.1f}"/>'
        )
        if count:
            parts.append(_text((left + right) / 2, _HEIGHT - tall + 13, f"{count:,}", "middle"))
    bottom = _HEIGHT + 18
    parts.append(_line(frame.at(0.0), bottom, frame.at(1.0), bottom, "zero"))
    parts += [_text(x(edge), bottom + 16, f"{edge:.3g}", "middle") for edge in chart.edges[:: frame.every]]
    parts.append(_text(frame.middle, bottom + 36, f"items by {chart.label}", "middle"))
    bins = zip(chart.edges, chart.edges[1:], chart.counts, strict=False)
    told = " ".join(f"{a:.3g} to {b:.3g}: {n:,}." for a, b, n in bins)
    return _element(chart.title, f"Items by {chart.label}. {told}", bottom + _FOOT, key, frame, parts)


def _element(title: str, told: str, height: float, key: str, frame: _Frame, parts: Iterable[str]) -> str:
    name = shown_html(title or "chart")
    return (
        f'<svg class="{frame.name}" viewBox="0 0 {frame.width} {height:.0f}" role="img" '
        f'aria-labelledby="{key}-title {key}-desc">\n'
        f'<title id="{key}-title">{name}</title>\n'
        f'<desc id="{key}-desc">{shown_html(told)}</desc>\n' + "\n".join(parts) + "\n</svg>"
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
    name = shown(name)
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _line(x1: float, y1: float, x2: float, y2: float, name: str) -> str:
    return f'<line class="{name}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def _text(x: float, y: float, text: str, anchor: str, name: str = "") -> str:
    own = f' class="{name}"' if name else ""
    return f'<text{own} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown_html(text)}</text>'
