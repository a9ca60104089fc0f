"""PP-LUCB as stated, until it stops, with audit-eprocess in the same worlds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from audits_sections.play import Make, Played, audit, lucb
from audits_sections.worlds import NULLS, paper, paper_tied, paper_tied_arm_bias
from judges_sections.found import Table

GAPS = (0.1, 0.15, 0.2)
T_MAX = 20_000
ALLOCATORS = ("uniform", "price-of-precision", "uncertainty-weighted", "neyman", "oracle")
POOL = 6000


@dataclass(frozen=True)
class Mean:
    """Audits of one kind.

    Attributes:
        decided: share in which a winner was declared.
        right: share in which it is the best.
        pulls: on average.
        audits: on average.
        cost: on average.
    """

    decided: float
    right: float
    pulls: float
    audits: float
    cost: float

    @classmethod
    def of(cls, found: list[Played]) -> Mean:
        """The best system is the first."""
        return cls(
            float(np.mean([p.decided for p in found])),
            float(np.mean([p.named == 0 for p in found])),
            float(np.mean([p.pulls for p in found])),
            float(np.mean([p.audits for p in found])),
            float(np.mean([p.cost for p in found])),
        )

    @property
    def cells(self) -> tuple[str, ...]:
        """For a table."""
        amounts = (f"{x:,.0f}" for x in (self.pulls, self.audits, self.cost))
        return f"{self.decided:.3f}", f"{self.right:.3f}", *amounts


def recommended(make: Make, gap: float, trials: int, **options: Any) -> Mean:
    """``audit-eprocess`` on pools of 6,000 items; without a judge, ``human-only``."""
    return Mean.of(
        [
            audit(make(POOL, gap, np.random.default_rng((seed, 3))), seed=seed, **options)
            for seed in range(trials)
        ]
    )


@dataclass(frozen=True)
class Stops:
    """Until it stops.

    Attributes:
        table: finished.
        stated: the rule with uniform audits, without T_max, by gap.
        corrected: the same with its errata fixed, by gap.
        within: the rule within T_max, by allocator and gap.
        ours: audit-eprocess, by gap.
    """

    table: Table
    stated: dict[float, Mean]
    corrected: dict[float, Mean]
    within: dict[tuple[str, float], Mean]
    ours: dict[float, Mean]


def stops(trials: int, literals: int, gaps: tuple[float, ...] = GAPS) -> Stops:
    """Pulls, audits and cost of the stated rule, by allocator, and of audit-eprocess."""
    rows: list[tuple[str, ...]] = []
    stated, corrected, within, ours = {}, {}, {}, {}
    for gap in gaps:
        stated[gap] = Mean.of([lucb(paper, gap, seed=seed) for seed in range(literals)])
        rows.append((f"{gap:g}", "pp-lucb, uniform, no T_max", *stated[gap].cells, "1.0x"))
        slow = Mean.of([lucb(paper, gap, seed=seed, allocator="neyman") for seed in range(literals)])
        rows.append((f"{gap:g}", "pp-lucb, neyman, no T_max", *slow.cells, _times(stated[gap], slow)))
        for name in ALLOCATORS:
            played = [lucb(paper, gap, seed=seed, most=T_MAX, allocator=name) for seed in range(literals)]
            within[name, gap] = found = Mean.of(played)
            told = "" if found.decided else "did not stop"
            rows.append((f"{gap:g}", f"pp-lucb, {name}, T_max", *found.cells, told))
        corrected[gap] = Mean.of([lucb(paper, gap, seed=seed, errata="fixed") for seed in range(literals)])
        ours[gap] = recommended(paper, gap, trials)
        for name, found in {
            "pp-lucb, uniform, errata fixed, no T_max": corrected[gap],
            "audit-eprocess": ours[gap],
            "audit-eprocess, batches of 50 labels": recommended(paper, gap, trials, labels_per_batch=50),
            "human-only": recommended(paper, gap, trials, use_judge=False),
        }.items():
            rows.append((f"{gap:g}", name, *found.cells, _times(stated[gap], found)))
    return Stops(
        Table(
            "Until it stops",
            ("gap", "rule", "decided", "leader is best", "pulls", "audits", "cost", "cheaper than stated"),
            tuple(rows),
            (
                f"T_max = {T_MAX:,} pulls; decided: a winner was declared (within T_max, if there is one). "
                f"{literals} runs of pp-lucb on endless streams of items, {trials} of the others on pools of "
                f"{POOL:,}. audit-eprocess decides after every batch (a tenth of its labels so far, from "
                "10 to 50), the stated rule after every pull: batches of 50 show what waiting costs.",
            ),
        ),
        stated,
        corrected,
        within,
        ours,
    )


def _times(stated: Mean, other: Mean) -> str:
    return f"{stated.cost / other.cost:.1f}x"


def nulls(trials: int, pool: int) -> tuple[Table, float]:
    """How often audit-eprocess names a winner where systems are equal, and the largest such share."""
    makes = {"the paper's judge": paper_tied, "bias differs by system": paper_tied_arm_bias, **NULLS}
    rows, worst = [], 0.0
    for name, make in makes.items():
        for systems in (2, 4):
            wrong = labels = 0
            for seed in range(trials):
                world = make(pool, systems, np.random.default_rng((seed, 9)))
                played = audit(world, seed=seed)
                wrong += played.is_wrong_among_equals(world)
                labels += played.audits
            worst = max(worst, wrong / trials)
            rows.append((name, str(systems), f"{wrong / trials:.3f}", f"{labels / trials:,.0f}"))
    note = (
        f"Pools of {pool:,} items, {trials} trials. After a second pass a winner is wrong if it is not the "
        "best of the pool."
    )
    columns = ("judge", "systems", "wrong winner", "labels")
    return Table("audit-eprocess where all systems are equal", columns, tuple(rows), (note,)), worst
