"""Repeats the experiments of the papers that evalbudget rests on; renders docs/benchmarks/papers.md.

Usage::

    python benchmarks/papers.py cyclicjudge pp-lucb
    python benchmarks/papers.py all --write-docs
    python benchmarks/papers.py all --quick
"""

from __future__ import annotations

from papers_sections.cyclicjudge import cyclicjudge
from papers_sections.pp_lucb import pp_lucb
from papers_sections.pulse import pulse
from papers_sections.robin_hood import robin_hood
from sections import Page, command

PAGE = Page(
    script="papers",
    name="papers",
    title="Papers: their experiments in their own constants, published figures beside measured ones",
    sections={
        "cyclicjudge": cyclicjudge,
        "pp-lucb": pp_lucb,
        "robin-hood": robin_hood,
        "pulse": pulse,
    },
)

main = command(PAGE)

if __name__ == "__main__":
    main()
