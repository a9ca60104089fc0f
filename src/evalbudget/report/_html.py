"""The report as one web page that needs nothing but itself."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from evalbudget.report._picture import draw

if TYPE_CHECKING:
    from evalbudget.report._report import Report

_STYLE = """\
body { font: 15px/1.5 system-ui, sans-serif; color: #1b1b1b; background: #fff; max-width: 62rem; \
margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .2rem; }
h2 { font-size: 1.1rem; margin: 2.2rem 0 .4rem; }
p.note { color: #555; font-size: .88rem; max-width: 46rem; margin: .5rem 0 0; }
div.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th { text-align: right; font-weight: 600; border-bottom: 1px solid #999; white-space: nowrap; }
td { text-align: right; border-bottom: 1px solid #eee; white-space: nowrap; }
th, td { padding: .2rem .7rem .2rem 0; }
svg { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) {
  body { color: #ddd; background: #181818; } p.note { color: #aaa; } td { border-color: #333; }
  svg { background: #fff; }
}
"""


def page(report: Report, *, title: str = "evalbudget report") -> str:
    """Tables and the picture as HTML: no script, no font, no image from anywhere else.

    Raises:
        InvalidInputError: matplotlib is not installed.
    """
    models, raters = len(report.models), len(report.raters)
    parts = [f"{models} model{'s' * (models != 1)}", f"{report.items:,} items"]
    parts += [f"{raters} judges"] if raters > 1 else []
    body = [f"<h1>{escape(title)}</h1>", f'<p class="note">{", ".join(parts)}</p>']
    if report.charts():
        body.append(f'<div class="wide">{_inline(draw(report, "svg"))}</div>')
    body += [table._repr_html_() for table in report.table().parts]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _inline(svg: bytes) -> str:
    """The element alone: no XML header, no document type, no metadata that names other sites."""
    text = svg.decode()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return text[text.index("<svg") :].strip()
