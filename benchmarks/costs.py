"""What allocating by cost is worth, and what money does to estimates; renders docs/benchmarks/costs.md.

Usage::

    python benchmarks/costs.py repeats races
    python benchmarks/costs.py all --write-docs
    python benchmarks/costs.py all --quick
"""

from __future__ import annotations

from costs_sections.bound import bound
from costs_sections.races import races
from costs_sections.repeats import repeats
from costs_sections.stopping import stopping
from costs_sections.validity import validity
from sections import Page, command

PAGE = Page(
    script="costs",
    name="costs",
    title="Costs: the same money, spent by cost",
    sections={
        "repeats": repeats,
        "bound": bound,
        "races": races,
        "validity": validity,
        "stopping": stopping,
    },
)

main = command(PAGE)

if __name__ == "__main__":
    main()
