"""Measures races of models and the intervals behind them; renders docs/benchmarks/races.md.

Usage::

    python benchmarks/racing.py matrices widths
    python benchmarks/racing.py all --write-docs
    python benchmarks/racing.py all --quick
"""

from __future__ import annotations

from racing_sections.draws import draws
from racing_sections.histories import histories
from racing_sections.intervals import coverage, widths
from racing_sections.leaderboard import identification
from racing_sections.matrices import matrices
from racing_sections.new_model import new_model
from racing_sections.one_score import one_score
from racing_sections.plans import plans
from racing_sections.proved import until_proved, wrong_winners
from racing_sections.rivals import rivals
from racing_sections.scale import scale
from racing_sections.until_right import until_right
from racing_sections.visit import visit
from racing_sections.visit_misled import visit_misled, visit_until
from sections import Page, command

PAGE = Page(
    script="racing",
    name="races",
    title="Racing models: evaluations to find the best, and what the intervals hold",
    sections={
        "identification": identification,
        "draws": draws,
        "until-right": until_right,
        "until-proved": until_proved,
        "plans": plans,
        "wrong-winners": wrong_winners,
        "histories": histories,
        "matrices": matrices,
        "rivals": rivals,
        "new-model": new_model,
        "visit": visit,
        "visit-misled": visit_misled,
        "visit-until": visit_until,
        "one-score": one_score,
        "widths": widths,
        "coverage": coverage,
        "scale": scale,
    },
)

main = command(PAGE)

if __name__ == "__main__":
    main()
