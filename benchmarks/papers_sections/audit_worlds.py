"""Section 6's world in figures, and two that the paper speaks of but does not run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits_sections.play import Make, lucb
from audits_sections.worlds import SYSTEMS, impossible, paper, paper_arm_bias
from judges_sections.found import Table
from papers_sections.audit_fixed import PULLS, in_turn
from papers_sections.audit_stops import Mean, recommended

FIFTHS = 5
WORLDS: dict[str, tuple[Make, float]] = {
    "bias by system, gap 0.1": (paper_arm_bias, 0.1),
    "impossibility pair": (impossible, 0.2),
}
"""And the gap between the two best means."""


def constants(items: int) -> tuple[Table, float]:
    """What the judge does to the scores at gap .1, and what Theorem 5.2's rate gains over one per system."""
    world = paper(items, 0.1, np.random.default_rng(9))
    off, rows, gains = world.human - world.judge, [], []
    for k in range(SYSTEMS):
        f, square = world.judge[:, k], off[:, k] ** 2
        fifth = np.minimum((f * FIFTHS).astype(int), FIFTHS - 1)
        count = np.bincount(fifth, minlength=FIFTHS)
        g = np.bincount(fifth, square, FIFTHS) / np.maximum(count, 1)
        gains.append(float((count / items @ np.sqrt(g)) ** 2 / square.mean()))
        figures = (world.human[:, k].mean(), f.mean())
        spread = (square.mean(), np.sqrt(square.mean()), f.var(), gains[-1])
        rows.append(
            (
                str(k + 1),
                *(f"{x:.3f}" for x in figures),
                f"{off[:, k].mean():+.3f}",
                *(f"{x:.4f}" for x in spread[:1]),
                *(f"{x:.3f}" for x in spread[1:]),
            )
        )
    columns = (
        "system",
        "E Y",
        "E F",
        "E (Y - F)",
        "g = E (Y - F)^2",
        "sqrt(g)",
        "Var F",
        "rate by score / by system",
    )
    note = (
        f"{items:,} items at gap .1. Clipping to [0, 1] turns the judge's bias of +.1 round. The last "
        "column: variance with audits by sqrt(g) of system and fifth of the scale (Theorem 5.2) over that by "
        "system (section 6), at the same rate."
    )
    return Table("The world of section 6", columns, tuple(rows), (note,)), min(gains)


@dataclass(frozen=True)
class Others:
    """Worlds where the judge alone is misled.

    Attributes:
        table: finished.
        alone: how often the judge alone picks the best, by world.
        ours: audit-eprocess, by world.
        stated: pp-lucb until it stops, by world.
    """

    table: Table
    alone: dict[str, float]
    ours: dict[str, Mean]
    stated: dict[str, Mean]


def others(trials: int, literals: int) -> Others:
    """The judge alone, the stated rule and audit-eprocess where bias differs, and where no judge can tell."""
    rows, alone, ours, stated = [], {}, {}, {}
    for name, (make, gap) in WORLDS.items():
        judged = in_turn(make, gap, 0.0, 2500, trials)
        alone[name] = judged.right
        rows.append((name, "judge only, 2,500 pulls per system", *judged.cells))
        after = Mean.of([lucb(make, gap, seed=seed, most=PULLS) for seed in range(trials)])
        rows.append((name, f"pp-lucb, uniform, {PULLS} pulls", *after.cells))
        stated[name] = Mean.of([lucb(make, gap, seed=seed) for seed in range(literals)])
        rows.append((name, "pp-lucb, uniform, until it stops", *stated[name].cells))
        ours[name] = recommended(make, gap, trials)
        rows.append((name, "audit-eprocess", *ours[name].cells))
    return Others(
        Table(
            "Where the judge misleads",
            ("world", "rule", "decided", "leader is best", "pulls", "audits", "cost"),
            tuple(rows),
            (
                "bias by system: as section 6, but -.1 for the best system and +.1 for the others, before "
                "clipping. Impossibility pair: F ~ Bernoulli(.5) for both, Y = .2 + .8 F and .8 F. "
                f"{trials} runs, {literals} until it stops.",
            ),
        ),
        alone,
        ours,
        stated,
    )
