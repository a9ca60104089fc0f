"""Measures the papers' own experiments beside their published figures; renders docs/benchmarks/papers.md.

Usage::

    python benchmarks/papers.py robin-hood
    python benchmarks/papers.py all --write-docs
    python benchmarks/papers.py all --quick
"""

from __future__ import annotations

from papers_sections.pulse import pulse
from papers_sections.robin_hood import robin_hood
from sections import Page, command

PAGE = Page(
    script="papers",
    name="papers",
    title="The papers' experiments, and what is wrong in them",
    sections={"robin-hood": robin_hood, "pulse": pulse},
    need_data=("robin-hood", "pulse"),
)

main = command(PAGE)

if __name__ == "__main__":
    main()
