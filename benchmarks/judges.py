"""Measures judge rotation and the estimators behind it; renders docs/benchmarks/judges.md.

Usage::

    python benchmarks/judges.py prices speed
    python benchmarks/judges.py all --write-docs
    python benchmarks/judges.py all --quick
"""

from __future__ import annotations

from judges_sections.components import interaction
from judges_sections.predictions import predictions
from judges_sections.repeats import repeats
from judges_sections.replays import prices, real
from judges_sections.schedules import period, speed
from sections import Page, command

PAGE = Page(
    script="judges",
    name="judges",
    title="Judges: what rotation reaches, and what the intervals hold",
    sections={
        "interaction": interaction,
        "predictions": predictions,
        "real": real,
        "prices": prices,
        "repeats": repeats,
        "period": period,
        "speed": speed,
    },
)

main = command(PAGE)

if __name__ == "__main__":
    main()
