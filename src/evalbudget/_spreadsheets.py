"""Texts in tables that people open in a spreadsheet, which takes some for formulas, whoever wrote them."""

from __future__ import annotations

import re

_FORMULA = re.compile(r"'*(?:[=@\t\r\n＝＋－＠]|[+-](?!(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\Z))")
"""How a formula begins, or one that an apostrophe stops; numbers are none."""


def as_cell(text: str) -> str:
    """The text with an apostrophe in front where a spreadsheet would take it for a formula."""
    return "'" + text if _FORMULA.match(text) else text


def from_cell(text: str) -> str:
    """The text that :func:`as_cell` made this of; any other text as it is."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text
