"""A plan: tables for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalbudget.replay._rows import defined
from evalbudget.tables import PrintableTable


@dataclass(frozen=True, repr=False)
class Plans:
    """What each way of spending needs, or reaches.

    Attributes:
        document: what the plans say, in JSON values and floats; ``plans`` are the rows.
        tables: the same for people, one below the other.
    """

    document: Mapping[str, Any]
    tables: tuple[PrintableTable, ...]

    def to_dict(self) -> dict[str, Any]:
        """JSON values; undefined numbers are None."""
        found: dict[str, Any] = defined(dict(self.document))
        return found

    def to_json(self, *, indent: int | None = 2) -> str:
        """:meth:`to_dict` as text."""
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False, ensure_ascii=False)

    def _repr_html_(self) -> str:
        """What notebooks show."""
        return "\n".join(table._repr_html_() for table in self.tables)

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self.tables))
