"""Comparisons of finished logs: how often their intervals hold, with clusters and without."""

from __future__ import annotations

import numpy as np
from scipy.stats import binomtest

from comparisons_sections.worlds import WORLDS
from evalbudget.backtest import RecordedScores
from evalbudget.comparisons import Outcome, compare
from judges_sections.found import Found, Target

RUNS = 2000
LEVEL = 0.95


def compared(quick: bool, seeds: int | None = None) -> Found:
    """Wrong verdicts where there is no difference, and where it is exactly the margin."""
    runs, n = (5, 40) if quick else (seeds or RUNS, 300)
    rows, wrong = [], {}
    for name, world in WORLDS.items():
        for times in (0, -1):
            for by in ("items", "document") if name == "clustered" else ("items",):
                rng = np.random.default_rng(3)
                delta = times * world.margin
                failed = missed = 0
                for _ in range(runs):
                    drawn = world.draw(rng, n, delta)
                    labels = (np.zeros(n) if drawn.cluster is None else drawn.cluster).tolist()
                    recorded = RecordedScores(
                        np.array([drawn.candidate, drawn.baseline])[:, :, None, None],
                        ("candidate", "baseline"),
                        tuple(map(str, range(n))),
                        ("score",),
                        categories=tuple(map(str, labels)),
                    )
                    (row,) = compare(
                        recorded,
                        margin=world.margin,
                        cluster=None if by == "items" else by,
                        level=LEVEL,
                    ).rows
                    better = row.outcome in (Outcome.FIRST, Outcome.SECOND)
                    failed += better if times == 0 else row.outcome in (Outcome.EQUIVALENT, Outcome.FIRST)
                    missed += not row.low <= delta <= row.high
                wrong[name, times, by] = failed
                rows.append((name, by, f"{delta:+.2f}", f"{failed / runs:.3f}", f"{1 - missed / runs:.3f}"))
    honest = {key: k for key, k in wrong.items() if key[0] != "clustered" or key[2] != "items"}
    kept = all(binomtest(k, runs, 1 - LEVEL, alternative="greater").pvalue > 0.001 for k in honest.values())
    return Found(
        f"{runs:,} comparisons per row of two logs on {n} items, at the margins of the section above.",
        ("world", "sampled", "difference", "wrong verdicts", "interval holds"),
        tuple(rows),
        targets=(
            Target(
                f"wrong verdicts at most {1 - LEVEL:g}, where clusters are told",
                f"at most {max(honest.values()) / runs:.3f}",
                kept,
            ),
        ),
        notes=("Clustered items that are taken for independent ones show what --cluster is for.",),
    )
