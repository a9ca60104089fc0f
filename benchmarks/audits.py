"""Measures audits of a judge by few human labels; renders docs/benchmarks/audits.md.

Usage::

    python benchmarks/audits.py environments nulls
    python benchmarks/audits.py all --write-docs
    python benchmarks/audits.py all --quick
"""

from __future__ import annotations

from audits_sections.hanna import hanna
from audits_sections.recommended import batches, environments, nulls
from audits_sections.small import one_system, small, small_nulls
from sections import Page, command

PAGE = Page(
    script="audits",
    name="audits",
    title="Audits: labels to find the best system with a judge, and what the verdicts hold",
    sections={
        "environments": environments,
        "small": small,
        "nulls": nulls,
        "small-nulls": small_nulls,
        "one-system": one_system,
        "batches": batches,
        "hanna": hanna,
    },
)

main = command(PAGE)

if __name__ == "__main__":
    main()
