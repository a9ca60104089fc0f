"""Tables as HTML that screen readers can walk through, with links to what their names are about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from evalbudget.report._numbers import NAMED
from evalbudget.shown import shown_html
from evalbudget.tables import NotedTable, as_text, plain_text

MOST_ROWS = 1000
"""Of one table on a page; the data beside it has all."""
_LONG = 40  # letters; a text, which wants more room than a name


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
            {str(as_text(name)): before + address for name, address in known.items()} for known in addresses
        )
        return cls(model, judge)

    def named(self, column: str, text: str) -> str:
        """The text, escaped, as a link if the column is of models or judges and the name has a page."""
        address = {"model": self.model, "against": self.model, "judge": self.judge}.get(column, {}).get(text)
        told = shown_html(text)
        return told if address is None else f'<a href="{shown_html(address)}">{told}</a>'


def as_html(table: NotedTable, heading: str, links: Links) -> str:
    """A table with its caption, and its note below.

    Args:
        table: to write.
        heading: what stands above it; a caption that says no more is for screen readers only.
        links: of names.
    """
    heads = [plain_text(column.header) for column in table.columns]
    cells = [[plain_text(cell or "") for cell in list(column.cells)[:MOST_ROWS]] for column in table.columns]
    sides = [
        _side(column.justify == "left" or head in NAMED, texts)
        for head, column, texts in zip(heads, table.columns, cells, strict=True)
    ]
    first = next((i for i, head in enumerate(heads) if head in NAMED), 0)
    title = plain_text(table.title or "")
    known = ' class="unseen"' if title.casefold() == heading.casefold() else ""
    lines = [f"<caption{known}>{shown_html(title or heading)}</caption>", "<thead><tr>"]
    for head, side in zip(heads, sides, strict=True):
        if head.strip():
            lines.append(f'<th scope="col"{side}>{shown_html(head)}</th>')
        else:
            lines.append(f"<td{side}></td>")
    lines += ["</tr></thead>", "<tbody>"]
    for row in zip(*cells, strict=True):
        line = []
        for i, cell in enumerate(row):
            text = links.named(heads[i], cell)
            line.append(
                f'<th scope="row"{sides[i]}>{text}</th>' if i == first else f"<td{sides[i]}>{text}</td>"
            )
        lines.append(f"<tr>{''.join(line)}</tr>")
    lines.append("</tbody>")
    note = table.note
    if table.row_count > MOST_ROWS:
        note = f"The first {MOST_ROWS:,} of {table.row_count:,} rows; report.json has all. {note}"
    return (
        '<div class="wide" tabindex="0" role="region" aria-label="'
        + shown_html(title or heading)
        + '"><table>\n'
        + "\n".join(lines)
        + "\n</table></div>"
        + (f'\n<p class="note">{shown_html(note)}</p>' if note else "")
    )


def _side(words: bool, texts: Sequence[str]) -> str:
    if not words:
        return ""
    return ' class="word long"' if max(map(len, texts), default=0) > _LONG else ' class="word"'
