"""audit-eprocess against the literal rule, under nulls, and with other batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binomtest

from audits_sections.play import Played, audit, lucb
from audits_sections.worlds import NULLS, WORLDS
from judges_sections.found import Found, Target

TRIALS = 500
POOL = 6000
LITERAL = 10
CASES = (
    ("paper", 0.05),
    ("paper", 0.1),
    ("paper", 0.15),
    ("paper", 0.2),
    ("graded", 0.05),
    ("graded", 0.1),
    ("graded", 0.2),
    ("arm-dependent bias", 0.1),
    ("three segments", 0.1),
    ("80% binary", 0.1),
    ("perfect", 0.1),
    ("uninformative", 0.1),
)


def environments(quick: bool, seeds: int | None = None) -> Found:
    """Cost and accuracy in every environment, and the ratio to the literal rule."""
    trials, literals = (2, 1) if quick else (seeds or TRIALS, LITERAL)
    rows, ratio, accuracy, cost = [], {}, {}, {}
    for name, gap in CASES[3:4] if quick else CASES:
        make = WORLDS[name]
        ours = [audit(make(POOL, gap, np.random.default_rng((seed, 3))), seed=seed) for seed in range(trials)]
        theirs = [lucb(make, gap, seed=seed) for seed in range(literals)]
        case = f"{name}, gap {gap:g}"
        cost[case] = float(np.mean([p.cost for p in ours]))
        ratio[case] = float(np.mean([p.cost for p in theirs])) / cost[case]
        accuracy[case] = int(sum(p.decided and p.named == 0 for p in ours))
        rows.append(
            (
                name,
                f"{gap:g}",
                f"{np.mean([p.decided for p in ours]):.3f}",
                f"{accuracy[case] / trials:.3f}",
                f"{np.mean([p.pulls for p in ours]):,.0f}",
                f"{np.mean([p.audits for p in ours]):,.0f}",
                f"{cost[case]:,.0f}",
                f"{np.mean([p.cost for p in theirs]):,.0f}",
                f"{ratio[case]:.1f}x",
            )
        )
    right = {
        case: binomtest(n, trials, 0.95, alternative="less").pvalue > 0.001 for case, n in accuracy.items()
    }
    least = min(accuracy.values()) / trials
    at = {name: cost.get(f"{name}, gap 0.1", float("nan")) for name in ("paper", "graded")}
    return Found(
        "paper: the world of PP-LUCB's section 6, pass or fail, as on [the page of the papers](papers.md); "
        "in graded and most others humans rate. "
        f"delta = .05, prices 1 and 20, pools of {POOL:,} items, a pilot of 40 labels, then batches "
        f"of a tenth of those so far (10 to 50), each bought whole; {trials} trials, the literal rule "
        f"(uniform audits, until it stops) {literals}.",
        ("judge", "gap", "decided", "correct", "pulls", "audits", "cost", "cost of pp-lucb", "ratio"),
        tuple(rows),
        (
            *(
                Target(f"{name}: cost at most 6,000 at gap .1", f"{x:,.0f}", x <= 6000)
                for name, x in at.items()
            ),
            Target(
                "at least 5x below literal everywhere",
                f"least {min(ratio.values()):.1f}x",
                min(ratio.values()) >= 5,
            ),
            Target("accuracy at least .95 everywhere", f"least {least:.3f}", all(right.values())),
        ),
    )


def nulls(quick: bool, seeds: int | None = None) -> Found:
    """How often a winner is declared, or the best dropped, where all systems are equal."""
    trials, pool = (2, 120) if quick else (seeds or TRIALS, 600)
    rows, rejected = [], {}
    for name, make in NULLS.items():
        for systems in (2, 4):
            won = wrong = exact = labels = 0
            for seed in range(trials):
                world = make(pool, systems, np.random.default_rng((seed, 9)))
                found = audit(world, seed=seed)
                won += found.decided and not found.of_pool
                wrong += found.is_wrong_among_equals(world)
                exact += found.decided and found.exact
                labels += found.audits
            rejected[name, systems] = wrong
            rows.append(
                (
                    name,
                    str(systems),
                    f"{won / trials:.3f}",
                    f"{wrong / trials:.3f}",
                    f"{exact / trials:.3f}",
                    f"{labels / trials:,.0f}",
                )
            )
    worst = max(rejected.values())
    return Found(
        f"All systems are equal on items like these; pools of {pool:,} items, {trials} trials. A winner that "
        "the first pass declares is wrong. The second pass is about the pool, whose means differ by chance: "
        "there a winner is wrong if it is not the best of the pool, and certain where labels alone decide. "
        "In the fixed pool the means are exactly equal, and any winner is wrong.",
        ("judge", "systems", "winner of the first pass", "wrong winner", "winner, exact", "labels"),
        tuple(rows),
        (Target("a wrong winner in at most .05", f"at most {worst / trials:.3f}", worst / trials <= 0.05),),
        (
            "The threshold is 2/delta: with two equal systems either may be dropped, and with 1/delta a "
            "winner would be declared up to twice as often as delta.",
        ),
    )


def batches(quick: bool, seeds: int | None = None) -> Found:
    """Cost and validity by size of batch."""
    trials, pool, tie = (2, 200, 120) if quick else ((seeds or TRIALS) // 2, POOL, 600)
    rows, wrong, wins = [], 0, []
    for size in (None, 10) if quick else (None, 1, 10, 50, 150):
        options: dict[str, Any] = {"labels_per_batch": size, "pilot": min(40, max(size or 40, 8))}
        found = [
            audit(WORLDS["paper"](pool, 0.1, np.random.default_rng((seed, 3))), seed=seed, **options)
            for seed in range(trials)
        ]
        worlds = [NULLS["rare errors"](tie, 2, np.random.default_rng((seed, 9))) for seed in range(trials)]
        tied = [(audit(world, seed=seed, **options), world) for seed, world in enumerate(worlds)]
        wrong = max(wrong, sum(not (p.decided and p.named == 0) for p in found))
        wins.append(sum(p.is_wrong_among_equals(w) for p, w in tied))
        rows.append(
            (
                "a tenth of those so far, 10 to 50" if size is None else str(size),
                str(options["pilot"]),
                f"{np.mean([p.decided and p.named == 0 for p in found]):.3f}",
                f"{np.mean([p.pulls for p in found]):,.0f}",
                f"{np.mean([p.audits for p in found]):,.0f}",
                f"{np.mean([p.cost for p in found]):,.0f}",
                f"{wins[-1] / trials:.3f}",
            )
        )
    return Found(
        f"The world of PP-LUCB's section 6 at gap .1, and the null with rare errors (2 systems, {tie} "
        f"items); {trials} trials. A batch's labels are asked for together and learned from in draw order, "
        "so the order and the delay of their arrival change nothing, which the tests of the session check.",
        ("labels per batch", "pilot", "correct", "pulls", "audits", "cost", "wrong winner under the null"),
        tuple(rows),
        (
            Target(
                "at least .95 correct with every batch",
                f"at most {wrong} wrong of {trials}",
                binomtest(wrong, trials, 0.05, alternative="greater").pvalue > 0.001,
            ),
            Target(
                "a winner under the null in at most .05",
                f"at most {max(wins) / trials:.3f}",
                binomtest(max(wins), trials, 0.05, alternative="greater").pvalue > 0.001,
            ),
        ),
    )


__all__ = ["Played", "batches", "environments", "nulls"]
