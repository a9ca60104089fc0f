"""What every page of a report has around its parts: style, a way past the navigation, a list of contents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalbudget.shown import shown_html

GENERATOR = '<meta name="generator" content="evalbudget report">'
"""In every page; a folder whose index.html has it may be written again."""

_STYLE = """\
:root { color-scheme: light dark; --ink: #1b1b1b; --soft: #555; --line: #ddd; --paper: #fff; \
--accent: #0b5fa5; --pale: #6fa8d8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e2e2e2; --soft: #aaa; --line: #3a3a3a; --paper: #161616; --accent: #8cc4f5; \
--pale: #4d85b5; }
}
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); \
max-width: 62rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }
a { color: var(--accent); }
a:focus-visible, [tabindex]:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); \
outline-offset: 2px; }
h1 { font-size: 1.6rem; margin: 1rem 0 .2rem; }
h2 { font-size: 1.25rem; margin: 2.4rem 0 .4rem; }
h3 { font-size: 1.05rem; margin: 1.8rem 0 .4rem; }
.note { color: var(--soft); font-size: .9rem; max-width: 46rem; margin: .5rem 0 1rem; }
nav ul, .names { padding-left: 1.2rem; columns: 16rem; }
/* a shadow on the side where more of a wide table is */
.wide { overflow-x: auto; background: linear-gradient(to right, var(--paper) 60%, transparent), \
linear-gradient(to left, var(--paper) 60%, transparent) 100% 0, \
linear-gradient(to right, var(--line), transparent), \
linear-gradient(to left, var(--line), transparent) 100% 0; background-repeat: no-repeat; \
background-size: 3rem 100%, 3rem 100%, 1rem 100%, 1rem 100%; \
background-attachment: local, local, scroll, scroll; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .94rem; }
caption { text-align: left; font-weight: 600; padding: .4rem 0; }
th, td { text-align: right; padding: .2rem .8rem .2rem 0; white-space: nowrap; \
border-bottom: 1px solid var(--line); }
thead th, thead td { border-bottom-color: var(--soft); vertical-align: bottom; }
tbody th { font-weight: 400; }
.word { text-align: left; white-space: normal; min-width: 8.5rem; overflow-wrap: anywhere; }
.long { min-width: 12rem; }
figure { margin: 1rem 0; }
figure svg { display: block; width: 100%; max-width: 48rem; height: auto; font: 13px system-ui, sans-serif; }
figure .narrow { display: none; }
@media (max-width: 40rem) {
  figure .broad { display: none; }
  figure .narrow { display: block; max-width: 30rem; }
}
svg text { fill: currentColor; }
svg .grid { stroke: var(--line); }
svg .zero { stroke: currentColor; }
svg .thin { stroke: var(--pale); stroke-width: 2; }
svg .thick { stroke: var(--accent); stroke-width: 5; }
svg .point, svg circle.marked { fill: var(--paper); stroke: var(--accent); stroke-width: 2; }
svg circle.marked { fill: currentColor; }
svg text.marked { font-weight: 700; }
svg .bin { fill: var(--accent); }
.unseen:not(:focus) { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); \
white-space: nowrap; }
@media print { nav, .skip { display: none; } }
"""


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a page.

    Attributes:
        key: its anchor, unique in the page.
        heading: plain text.
        body: HTML.
        parts: within it.
    """

    key: str
    heading: str
    body: str
    parts: tuple[Part, ...] = ()


def document(title: str, lead: str, parts: Sequence[Part], *, above: str = "", below: str = "") -> str:
    """A whole page.

    Args:
        title: plain text.
        lead: plain text below it.
        parts: in order; they make the list of contents.
        above: HTML before the contents, for example the way back.
        below: HTML of the foot.
    """
    contents = f'<nav aria-label="Contents">\n{_contents(parts)}\n</nav>' if len(parts) > 1 else ""
    pieces = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        GENERATOR,
        f"<title>{shown_html(title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>",
        '<a class="skip unseen" href="#main">Skip to the results</a>',
        f"<header>\n{above}<h1>{shown_html(title)}</h1>",
        f'<p class="note">{shown_html(lead)}</p>',
        contents,
        '</header>\n<main id="main">',
        *(_section(part, 2) for part in parts),
        "</main>",
        f"<footer>\n{below}\n</footer>" if below else "",
        "</body>\n</html>",
    ]
    return "\n".join(piece for piece in pieces if piece) + "\n"


def _contents(parts: Sequence[Part]) -> str:
    lines = []
    for part in parts:
        inner = f"\n{_contents(part.parts)}" if part.parts else ""
        lines.append(f'<li><a href="#{part.key}">{shown_html(part.heading)}</a>{inner}</li>')
    return "<ul>\n" + "\n".join(lines) + "\n</ul>"


def _section(part: Part, depth: int) -> str:
    inner = "\n".join(_section(each, depth + 1) for each in part.parts)
    return (
        f'<section id="{part.key}" aria-labelledby="{part.key}-heading">\n'
        f'<h{depth} id="{part.key}-heading">{shown_html(part.heading)}</h{depth}>\n'
        + "\n".join(text for text in (part.body, inner) if text)
        + "\n</section>"
    )
