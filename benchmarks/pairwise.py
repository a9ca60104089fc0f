"""Intervals of preferences, and calls until a winner is proved; renders docs/benchmarks/pairwise.md.

Usage::

    python benchmarks/pairwise.py winners
    python benchmarks/pairwise.py all --write-docs
    python benchmarks/pairwise.py all --quick
"""

from __future__ import annotations

from pairwise_sections.coverage import coverage
from pairwise_sections.judges import judges
from pairwise_sections.orders import orders
from pairwise_sections.winners import winners
from sections import Page, command

PAGE = Page(
    script="pairwise",
    name="pairwise",
    title="Pairwise judges: intervals that hold, and what a winner costs",
    sections={"coverage": coverage, "judges": judges, "orders": orders, "winners": winners},
)

main = command(PAGE)

if __name__ == "__main__":
    main()
