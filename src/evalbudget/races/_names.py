"""Names of models in narrow columns: broken where a reader would break them."""

from __future__ import annotations

import re

_PARTS = re.compile(r"[^/:,=_ -]*[/:,=_ -]?")


def wrapped(name: str, width: int) -> str:
    """The name in lines of at most ``width``, broken after a separator, or within a part that is longer."""
    lines = [""]
    for part in filter(None, _PARTS.findall(name)):
        if len(lines[-1]) + len(part.rstrip()) > width and lines[-1]:
            lines.append("")
        lines[-1] += part
        while len(lines[-1]) > width:
            lines[-1:] = [lines[-1][:width], lines[-1][width:]]
    return "\n".join(line.rstrip() for line in lines if line)


def shortened(name: str, width: int) -> str:
    """The name on one line: its last parts, which tell models apart, after an ellipsis."""
    if len(name) <= width:
        return name
    parts = [part for part in _PARTS.findall(name) if part]
    kept = ""
    for part in reversed(parts):
        if len(kept) + len(part) + 1 > width:
            break
        kept = part + kept
    return f"…{kept or name[-(width - 1) :]}"
