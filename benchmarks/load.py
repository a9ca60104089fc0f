"""What large sizes take in time and memory; renders docs/benchmarks/load.md.

Usage::

    python benchmarks/load.py book race
    python benchmarks/load.py all --write-docs
    python benchmarks/load.py all --quick
"""

from __future__ import annotations

from load_sections.sizes import arms, book, concurrent, items, race, slow
from sections import Page, command

PAGE = Page(
    script="load",
    name="load",
    title="Load: time and memory at large sizes",
    sections={
        "book": book,
        "concurrent": concurrent,
        "items": items,
        "race": race,
        "arms": arms,
        "slow": slow,
    },
)

main = command(PAGE)

if __name__ == "__main__":
    main()
