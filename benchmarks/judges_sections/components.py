"""Variance components where judges differ by item: the paper's estimator and the corrected one."""

from __future__ import annotations

import numpy as np

from evalbudget.judges.estimates import JudgeScores, Source, variance_components
from judges_sections.found import Found, Target, World, biases, names
from references.anova import variance_components_literal

IN_THE_PAPER = (Source.ITEM, Source.GENERATION, Source.RESIDUAL, Source.JUDGE)


def interaction(quick: bool) -> Found:
    n, m, K, R = 80, 10, 5, 20 if quick else 400
    world = World(2.0, 0.2, 0.5, 1.0, biases(K, 0.6))
    rng = np.random.default_rng(1)
    corrected, literal = [], []
    for _ in range(R):
        scores = JudgeScores.from_table(world.draw(n, m, rng), judges=names(K))
        corrected.append([c.value for c in variance_components(scores).components])
        p, _ = variance_components_literal(scores)
        item, generation, residual, judge = (p[source] for source in IN_THE_PAPER)
        literal.append([item, generation, np.nan, residual, judge])
    truth = np.array([2.0, 0.2, 0.5, 1.0, 0.6])
    rows = [("truth", *(f"{t:.3f}" for t in truth))]
    for label, draws in (("corrected", corrected), ("paper", literal)):
        mean, error = np.mean(draws, 0), np.std(draws, 0, ddof=1) / np.sqrt(R)
        rows.append(
            (
                label,
                *("-" if np.isnan(a) else f"{a:.3f} ±{e:.3f}" for a, e in zip(mean, error, strict=True)),
            )
        )
    ours, theirs = np.mean(corrected, 0)[1] / 0.2, np.mean(literal, 0)[1] / 0.2
    return Found(
        f"An item x judge interaction of half the residual: n = 80, m = 10, K = 5, {R} draws.",
        ("ANOVA", "item", "generation", "item x judge", "residual", "judge"),
        tuple(rows),
        (
            Target("corrected sigma_beta^2 within 10% of truth", f"{ours:.3f} of it", abs(ours - 1) < 0.1),
            Target("the paper's collapses by half", f"{theirs:.3f} of it", theirs < 0.6),
        ),
    )
