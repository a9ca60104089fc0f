"""Texts in tables that people open in a spreadsheet, which takes some for formulas, whoever wrote them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from evalbudget.shown import shown, shown_json

_FORMULA = re.compile(r"'*(?:[\t\r\n]|\s*(?:[=@＝＋－＠]|[+-](?!(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z)))")
"""How a formula begins, or one that an apostrophe stops; numbers are none."""
_QUOTED = re.compile("'+\"")


def as_cell(text: str) -> str:
    """The text with an apostrophe in front where a spreadsheet would take it for a formula."""
    return "'" + text if _FORMULA.match(text) else text


def from_cell(text: str) -> str:
    """The text that :func:`as_cell` made this of; any other text as it is."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def name_as_cell(name: str) -> str:
    """As :func:`as_cell`, for a name: one that a terminal or a build would obey is written as in JSON."""
    if shown(name) != name:
        return "'" + shown_json(json.dumps(name, ensure_ascii=False)).replace("::", r":\u003a")
    return "'" + name if _FORMULA.match(name) or _QUOTED.match(name) else name


def names_from_cells(cells: Sequence[str]) -> list[str]:
    """The names that :func:`name_as_cell` made these of; all as they are if it did not make one of them.

    A table of somebody else may have both ``=x`` and ``'=x``, which are two names.
    """
    names = {cell: _name_from_cell(cell) for cell in cells}
    ours = any(cell != name for cell, name in names.items()) and all(
        name_as_cell(name) == cell for cell, name in names.items()
    )
    return [names[cell] for cell in cells] if ours else list(cells)


def _name_from_cell(cell: str) -> str:
    if cell.startswith("'\""):
        try:
            name = json.loads(cell[1:])
        except ValueError:
            return cell
        return name if isinstance(name, str) else cell
    return cell[1:] if cell.startswith("'") and (_FORMULA.match(cell) or _QUOTED.match(cell)) else cell
