"""The report for a browser: one page that needs nothing but itself, or a folder with a page of each name."""

from __future__ import annotations

import csv
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from io import StringIO
from typing import TYPE_CHECKING, Any

from evalbudget._fields import percent
from evalbudget.report._html_document import Part, document
from evalbudget.report._html_table import Links, as_html
from evalbudget.report._leaderboard import Leaderboard, Standing
from evalbudget.report._slugs import slugs
from evalbudget.report._svg import legend, svg
from evalbudget.shown import shown, shown_html, shown_json
from evalbudget.spreadsheets import name_as_cell
from evalbudget.tables import NotedTable

if TYPE_CHECKING:
    from evalbudget.report._charts import Chart, Histogram
    from evalbudget.report._report import Report
    from evalbudget.report._section import Section

MOST_ON_PAGE = 12
"""Models, and judges, that have a section of their own in a single page."""
MOST_PAGES = 200
"""Models, and judges, that have a page of their own in a folder."""

TITLE = "evalbudget report"


def page(report: Report, *, title: str = TITLE) -> str:
    """One page with pictures and data: no script, no font, no image from anywhere else.

    The first 12 models of the leaderboard, and the first 12 judges, have a section of their own.

    Args:
        report: what to show.
        title: of the page.
    """
    known = [_Names.of(report, kind, MOST_ON_PAGE) for kind in Kind]
    links = Links.to([{name: f"#{n.kind}-{slug}" for name, slug in n.slugs.items()} for n in known])
    parts = _sections(report, links)
    for names in known:
        inner = tuple(
            Part(anchor, shown(name), _about(report, names.kind, name, anchor, links))
            for name, slug in names.slugs.items()
            if (anchor := f"{names.kind}-{slug}")
        )
        if inner:
            parts.append(Part(names.key, names.heading, names.left_out, inner))
    data = [
        f'<a download="{name}" href="data:{kind};base64,{_in_base64(text)}">{name}</a>'
        for name, (kind, text) in _files(report).items()
    ]
    return document(title, _lead(report), parts, below=_exports(data))


def site(report: Report, *, title: str = TITLE) -> dict[str, str]:
    """Pages as texts by their path in a folder: ``index.html``, one for each model and judge, and the data.

    The first 200 models of the leaderboard, and the first 200 judges, have a page. Names become file names of
    plain letters; those that would be the same are numbered.

    Args:
        report: what to show.
        title: of the pages.
    """
    known = [_Names.of(report, kind, MOST_PAGES) for kind in Kind]
    paths = [{name: f"{n.kind}s/{slug}.html" for name, slug in n.slugs.items()} for n in known]
    parts = _sections(report, Links.to(paths))
    for names, own in zip(known, paths, strict=True):
        listed = [f'<li><a href="{path}">{shown_html(name)}</a></li>' for name, path in own.items()]
        if listed:
            body = f'{names.left_out}<ul class="names">\n' + "\n".join(listed) + "\n</ul>"
            parts.append(Part(names.key, names.heading, body))
    data = _files(report)
    below = _exports([f'<a href="{name}">{name}</a>' for name in data])
    found = {"index.html": document(title, _lead(report), parts, below=below)}
    links = Links.to(paths, before="../")
    for names, own in zip(known, paths, strict=True):
        found |= {path: _own_page(report, names.kind, name, links, title) for name, path in own.items()}
    return found | {name: text for name, (_, text) in data.items()}


class Kind(StrEnum):
    """What has a page of its own."""

    MODEL = "model"
    JUDGE = "judge"


@dataclass(frozen=True, slots=True)
class _Names:
    """Models or judges that there is something to say of.

    Attributes:
        kind: which of them.
        slugs: of the first ones, in order.
        total: how many there are.
    """

    kind: Kind
    slugs: Mapping[str, str]
    total: int

    @classmethod
    def of(cls, report: Report, kind: Kind, most: int) -> _Names:
        """Models in the order of the leaderboard; judges of a panel in theirs."""
        names: Sequence[str] = report.raters if len(report.raters) > 1 else ()
        if kind is Kind.MODEL:
            board = _board(report)
            names = report.models if board is None else [row.model for row in board.rows]
        told = [name for name in names[:most] if any(_of(section, kind, name) for section in report.sections)]
        return cls(kind, slugs(told, kind.value), len(names))

    @property
    def key(self) -> str:
        return f"each-{self.kind}"

    @property
    def heading(self) -> str:
        return f"Each {self.kind}"

    @property
    def left_out(self) -> str:
        """Which ones are not there, as HTML; empty where all are."""
        shown = len(self.slugs)
        if shown == self.total:
            return ""
        more = f" A folder (--html FOLDER/) has a page of each, of {MOST_PAGES} at most."
        return (
            f'<p class="note">{shown:,} of {self.total:,} {self.kind}s; the others are in the tables above '
            f"and in report.json.{more if shown < MOST_PAGES else ''}</p>\n"
        )


def _own_page(report: Report, kind: Kind, name: str, links: Links, title: str) -> str:
    parts = [
        Part(key, section.heading, body)
        for key, section in _keyed(report)
        if (body := _said(section, kind, name, report.level, key, section.heading, links))
    ]
    above = f'<nav aria-label="Back"><a href="../index.html">{shown_html(title)}</a></nav>\n'
    return document(shown(name), f"A {kind} of this report: {_lead(report)}", parts, above=above)


def _of(section: Section, kind: Kind, name: str) -> tuple[NotedTable, ...]:
    return section.about_model(name) if kind is Kind.MODEL else section.about_judge(name)


def _said(section: Section, kind: Kind, name: str, level: float, key: str, heading: str, links: Links) -> str:
    """Pictures and tables of one model or judge; empty if there are none."""
    charts = section.model_charts(name) if kind is Kind.MODEL else ()
    return _joined(_figures(charts, level, key), _of(section, kind, name), heading, links)


def _about(report: Report, kind: Kind, name: str, anchor: str, links: Links) -> str:
    return "\n".join(
        said
        for key, section in _keyed(report)
        if (said := _said(section, kind, name, report.level, f"{key}-{anchor}", "", links))
    )


def _board(report: Report) -> Leaderboard | None:
    return next((section for section in report.sections if isinstance(section, Leaderboard)), None)


def _sections(report: Report, links: Links) -> list[Part]:
    parts = []
    for key, section in _keyed(report):
        figures = _figures(section.charts(), report.level, key)
        body = _joined(figures, section.page_tables(), section.heading, links)
        parts.append(Part(key, section.heading, body))
    return parts


def _figures(charts: Sequence[Chart | Histogram], level: float, key: str) -> str:
    return "\n".join(
        f"<figure>\n{svg(chart, f'{key}-{number}')}\n"
        f'<figcaption class="note">{shown_html(legend(chart, level))}</figcaption>\n</figure>'
        for number, chart in enumerate(charts)
    )


def _keyed(report: Report) -> list[tuple[str, Section]]:
    """Sections with their anchors; plugins may call theirs what they like."""
    keys = slugs((section.name for section in report.sections), "section")
    return [(f"part-{keys[section.name]}", section) for section in report.sections]


def _joined(figures: str, tables: Sequence[NotedTable], heading: str, links: Links) -> str:
    """Pictures, then tables; empty if there are none."""
    return "\n".join(filter(None, [figures, *(as_html(table, heading, links) for table in tables)]))


def _lead(report: Report) -> str:
    models, raters = len(report.models), len(report.raters)
    parts = [f"{models:,} model{'s' * (models != 1)}", f"{report.items:,} items"]
    parts += [f"{raters} judges"] if raters > 1 else []
    return f"{', '.join(parts)}; intervals at {percent(report.level)}."


def _exports(links: Sequence[str]) -> str:
    return f'<p class="note">Data: {" · ".join(links)}</p>'


def _in_base64(text: str) -> str:
    return b64encode(text.encode(errors="backslashreplace")).decode()


def _files(report: Report) -> Mapping[str, tuple[str, str]]:
    """Type and text of the data, by name."""
    found = {"report.json": ("application/json", shown_json(report.to_json()) + "\n")}
    board = _board(report)
    if board is not None:
        text = StringIO()
        rows = csv.DictWriter(text, [f.name for f in fields(Standing)], lineterminator="\n")
        rows.writeheader()
        rows.writerows({key: _cell(value) for key, value in asdict(row).items()} for row in board.rows)
        found["leaderboard.csv"] = ("text/csv", text.getvalue())
    return found


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return name_as_cell(value)
    return "" if value is None or value != value else value
