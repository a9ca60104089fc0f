"""Names of files and anchors for names of models and judges, which may hold anything."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_LONGEST = 60
_RESERVED = {"con", "prn", "aux", "nul"} | {f"{port}{n}" for port in ("com", "lpt") for n in range(10)}
"""Names that no file may have on Windows, whatever follows the dot."""


def slugs(names: Iterable[str], empty: str) -> dict[str, str]:
    """A word of ``a-z``, ``0-9``, ``.``, ``_`` and ``-`` for each name, unique even where case is ignored.

    Args:
        names: unique.
        empty: what a name becomes of which nothing is left.
    """
    found: dict[str, str] = {}
    used = set(_RESERVED)
    for name in names:
        ascii_only = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
        base = re.sub(r"[^a-z0-9._]+", "-", ascii_only).strip("-._")[:_LONGEST].rstrip("-._") or empty
        slug, number = base, 1
        while slug in used:
            number += 1
            slug = f"{base}-{number}"
        used.add(slug)
        found[name] = slug
    return found
