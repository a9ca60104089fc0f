"""Tables as HTML that screen readers can walk through, with links to what their names are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Self

from evalbudget.report._numbers import NAMED
from evalbudget.tables import NotedTable, obeying_nothing, plain_text

MOST_ROWS = 1000
"""Of one table on a page; the data beside it has all."""


@dataclass(frozen=True, slots=True)
class Links:
    """Where names lead; those of nobody are not linked.

    Attributes:
        model: address by name of model, as cells show it.
        judge: address by name of judge.
    """

    model: Mapping[str, str]
    judge: Mapping[str, str]

    @classmethod
    def to(cls, addresses: Sequence[Mapping[str, str]], before: str = "") -> Self:
        """Links to addresses of models and of judges, each after a common beginning."""
        model, judge = (
            {obeying_nothing(name): before + address for name, address in known.items()}
            for known in addresses
        )
        return cls(model, judge)

    def named(self, column: str, text: str) -> str:
        """The text, escaped, as a link if the column is of models or judges and the name has a page."""
        address = {"model": self.model, "against": self.model, "judge": self.judge}.get(column, {}).get(text)
        told = escape(text)
        return told if address is None else f'<a href="{escape(address)}">{told}</a>'


def as_html(table: NotedTable, heading: str, links: Links) -> str:
    """A table with its caption, and its note below.

    Args:
        table: to write.
        heading: what stands above it; a caption that says no more is for screen readers only.
        links: of names.
    """
    heads = [plain_text(column.header) for column in table.columns]
    words = [
        head in NAMED or column.justify == "left" for head, column in zip(heads, table.columns, strict=True)
    ]
    first = next((i for i, head in enumerate(heads) if head in NAMED), 0)
    title = obeying_nothing(plain_text(table.title or ""))
    known = ' class="unseen"' if title.casefold() == heading.casefold() else ""
    lines = [f"<caption{known}>{escape(title or heading)}</caption>", "<thead><tr>"]
    for head, word in zip(heads, words, strict=True):
        side = ' class="word"' if word else ""
        if head.strip():
            lines.append(f'<th scope="col"{side}>{escape(head)}</th>')
        else:
            lines.append(f"<td{side}></td>")
    lines += ["</tr></thead>", "<tbody>"]
    rows = zip(*(list(column.cells)[:MOST_ROWS] for column in table.columns), strict=True)
    for row in rows:
        cells = []
        for i, cell in enumerate(row):
            side = ' class="word"' if words[i] else ""
            text = links.named(heads[i], plain_text(cell or ""))
            cells.append(f'<th scope="row"{side}>{text}</th>' if i == first else f"<td{side}>{text}</td>")
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines.append("</tbody>")
    note = obeying_nothing(table.note)
    if table.row_count > MOST_ROWS:
        note = f"The first {MOST_ROWS:,} of {table.row_count:,} rows; report.json has all. {note}"
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="'
        + escape(title or heading)
        + '"><table>\n'
        + "\n".join(lines)
        + "\n</table></div>"
        + (f'\n<p class="note">{escape(note)}</p>' if note else "")
    )
