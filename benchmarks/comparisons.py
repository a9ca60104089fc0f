"""Wrong verdicts of gates and comparisons, and their cost; renders docs/benchmarks/comparisons.md.

Usage::

    python benchmarks/comparisons.py gates
    python benchmarks/comparisons.py all --write-docs
    python benchmarks/comparisons.py all --quick
"""

from __future__ import annotations

from comparisons_sections.compared import compared
from comparisons_sections.gates import gates, these_items
from comparisons_sections.until import until
from sections import Page, command

PAGE = Page(
    script="comparisons",
    name="comparisons",
    title="Comparisons: wrong verdicts, and what a right one costs",
    sections={"gates": gates, "these-items": these_items, "compared": compared, "until": until},
)

main = command(PAGE)

if __name__ == "__main__":
    main()
