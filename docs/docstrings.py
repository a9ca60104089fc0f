"""Docstrings as Markdown: references by role and formulas are written for editors, and pages know neither."""

from __future__ import annotations

import re
from textwrap import dedent
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|meth|func|mod|attr|data|exc|math):`(~?)([^`]+)`")
_FORMULA = re.compile(r"^( *)\.\. math:: *(.*(?:\n *\S.*)*)", re.MULTILINE)
_CODE = re.compile(r"^( *)(.*)::$", re.MULTILINE)


class AsMarkdown(griffe.Extension):
    """Rewrites every docstring before it is parsed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Of modules, classes, functions and attributes alike."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    """Roles become code, formulas a block of LaTeX, and what announces code ends in one colon."""
    text = _FORMULA.sub(_block, text)
    text = _ROLE.sub(lambda found: f"`{found[2].rpartition('.')[2] if found[1] else found[2]}`", text)
    return _CODE.sub(_announced, text)


def _block(found: re.Match[str]) -> str:
    lines = [line.strip() for line in dedent(found[2]).splitlines()]
    return "\n".join(found[1] + line for line in ("```latex", *filter(None, lines), "```"))


def _announced(found: re.Match[str]) -> str:
    # "Example:" would be a section, whose code is no code
    told = {"": "", "Example": "An example."}.get(found[2], f"{found[2]}:")
    return found[1] + told if told else ""
