"""Beyond one process: what spreading work buys; renders docs/benchmarks/scale.md.

Usage::

    python benchmarks/scale.py processes
    python benchmarks/scale.py all --write-docs
    python benchmarks/scale.py all --quick
"""

from __future__ import annotations

from scale_sections.contention import contention
from scale_sections.processes import processes
from scale_sections.workers import workers
from sections import Page, command

PAGE = Page(
    script="scale",
    name="scale",
    title="Scale: beyond one process",
    sections={
        "processes": processes,
        "workers": workers,
        "contention": contention,
    },
)

main = command(PAGE)

if __name__ == "__main__":
    main()
