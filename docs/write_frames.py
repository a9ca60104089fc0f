"""Writes the tables of columns in docs/frames.md from the code."""

from __future__ import annotations

import re
from pathlib import Path

from evalbudget.frames import COLUMNS

PAGE = Path(__file__).with_name("frames.md")


def with_tables(text: str) -> str:
    """The page with what stands between its marks written anew."""
    for name, columns in COLUMNS.items():
        rows: list[str] = []
        for column in columns:
            if column.told == "of the same":  # the other end of an interval
                rows[-1] = rows[-1].replace("` |", f"`, `{column.name}` |", 1)
            else:
                rows.append(f"| `{column.name}` | {column.kind.value} | {column.told} |")
        table = "\n".join(["| column | holds | |", "|---|---|---|", *rows])
        mark = rf"(<!-- {name} -->\n).*?(\n<!-- end -->)"
        text = re.sub(mark, lambda found, table=table: f"{found[1]}{table}{found[2]}", text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
