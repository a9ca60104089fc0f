"""PP-LUCB's tables: the leader after 500 pulls, what it costs and how often it is the best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits_sections.play import PRICES, Make, lucb
from audits_sections.worlds import SYSTEMS, paper
from judges_sections.found import Table
from papers_sections.audit_stops import ALLOCATORS, GAPS, Mean

PULLS = 500
NEYMAN_RATE = (809 - PULLS * PRICES[0]) / PRICES[1] / PULLS
"""The audit rate that the cost published for Neyman is, .031."""
NEYMAN = f"neyman at rho = {NEYMAN_RATE:.3f}"
PUBLISHED = {
    ("neyman", 0.1): "809",
    (NEYMAN, 0.1): "809",
    ("uniform", 0.1): "1,552",
    ("uncertainty-weighted", 0.1): "1,442 (accuracy 100%)",
    ("price-of-precision", 0.1): "about that of uncertainty-weighted",
    ("oracle", 0.1): "about 20% below neyman",
    ("fixed", 0.1): "1,603 (accuracy 100%)",
    ("label all", 0.1): "10,500",
    ("judge only", 0.1): "accuracy 0%",
}
"""By allocator and gap."""
PER_SYSTEM = (32, 125, 500, 2500)


@dataclass(frozen=True)
class Fixed:
    """After 500 pulls.

    Attributes:
        table: finished.
        found: by allocator and gap.
    """

    table: Table
    found: dict[tuple[str, float], Mean]


def fixed(trials: int, gaps: tuple[float, ...] = GAPS) -> Fixed:
    """Every allocator, the degenerate strategies, and Neyman at the rate of its published cost."""
    found, rows = {}, []
    for gap in gaps:
        for name in ALLOCATORS:
            played = [lucb(paper, gap, seed=seed, most=PULLS, allocator=name) for seed in range(trials)]
            found[name, gap] = Mean.of(played)
        found[NEYMAN, gap] = Mean.of(
            [
                lucb(paper, gap, seed=seed, most=PULLS, allocator="neyman", rho=NEYMAN_RATE)
                for seed in range(trials)
            ]
        )
        found["label all", gap] = Mean.of(
            [lucb(paper, gap, seed=seed, most=PULLS, rho=1.0) for seed in range(trials)]
        )
        found["fixed", gap] = in_turn(paper, gap, 0.1, PULLS // SYSTEMS, trials)
        found["judge only", gap] = in_turn(paper, gap, 0.0, PULLS // SYSTEMS, trials)
    for (name, gap), mean in found.items():
        told = PUBLISHED.get((name, gap), "-")
        rows.append((f"{gap:g}", name, told, f"{mean.cost:,.0f}", f"{mean.audits:.1f}", f"{mean.right:.3f}"))
    return Fixed(
        Table(
            f"After {PULLS} pulls: the leader is named, nothing is proved",
            ("gap", "allocator", "published cost", "cost", "audits", "leader is best"),
            tuple(rows),
            (
                f"{trials} runs. fixed and judge only: all systems in turn, .1 of the answers audited or "
                "none; label all: rho = 1. The others: leader and challenger, rho = .1 on average over the "
                "pulls.",
            ),
        ),
        found,
    )


def in_turn(make: Make, gap: float, rate: float, pulls: int, trials: int) -> Mean:
    """Each system ``pulls`` times; the best mean of F + (A/pi)(Y - F), or of F alone."""
    right, audits = [], []
    for seed in range(trials):
        rng = np.random.default_rng((seed, 8))
        world = make(pulls, gap, rng)
        asked = rng.random(world.judge.shape) < rate
        means = world.judge.mean(axis=0)
        if rate > 0.0:
            means = means + (asked * (world.human - world.judge)).mean(axis=0) / rate
        right.append(int(np.argmax(means)) == 0)
        audits.append(int(asked.sum()))
    labels, total = float(np.mean(audits)), world.judge.size
    return Mean(0.0, float(np.mean(right)), total, labels, PRICES[0] * total + PRICES[1] * labels)


def judge_only(trials: int) -> tuple[Table, float]:
    """How often the judge alone picks the best, and that with the paper's number of pulls."""
    rows, at = [], 0.0
    for pulls in PER_SYSTEM:
        found = [in_turn(paper, gap, 0.0, pulls, trials).right for gap in GAPS]
        if pulls == PULLS // SYSTEMS:
            at = found[0]
        rows.append((f"{pulls:,}", *(f"{right:.3f}" for right in found)))
    columns = ("pulls per system", *(f"gap {gap:g}" for gap in GAPS))
    note = (
        f"{trials} runs. The paper gives 0%; with one bias for all systems the order of the judge's means is "
        "that of the humans'."
    )
    return Table("The judge alone: how often it picks the best", columns, tuple(rows), (note,)), at
