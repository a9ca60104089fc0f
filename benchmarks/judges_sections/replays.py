"""Rotations on recorded scores at equal calls, and at prices."""

from __future__ import annotations

import numpy as np

from evalbudget.backtest import RecordedScores, backtest_rotation
from evalbudget.judges.estimates import JudgeScores, effective_votes
from judges_sections.found import Found, Target
from places import data_file

PRICES = (1.0, 2.0, 5.0, 15.0, 30.0)


def real(quick: bool) -> Found:
    rows, targets = [], []
    for file, budgets, seeds in (("judge_repeats", (250, 1000), 2000), ("hanna_multijudge", (200, 800), 200)):
        recorded = RecordedScores.load(data_file(file))
        found = backtest_rotation(recorded, budgets=budgets, seeds=10 if quick else seeds)
        at = {(row.rotation, row.budget): row for row in found.rows}
        for row in found.rows:
            ratio = row.rmse**2 / at["cyclic", row.budget].rmse ** 2
            rows.append(
                (
                    file,
                    row.rotation,
                    str(row.budget),
                    f"{row.bias:+.4f}",
                    f"{row.rmse:.4f}",
                    f"{ratio:.2f}",
                    f"{row.coverage:.3f}",
                    f"{row.half_width:.4f}",
                )
            )
        for budget in budgets:
            c, s = at["cyclic", budget], at["single", budget]
            targets.append(
                Target(
                    f"{file}, {budget} calls: cyclic covers .94 to .97",
                    f"{c.coverage:.3f} (±{np.sqrt(0.05 * 0.95 / (c.seeds * c.models)):.3f})",
                    0.94 <= round(c.coverage, 3) <= 0.97,
                )
            )
            targets.append(
                Target(f"{file}, {budget} calls: single judge misses", f"{s.coverage:.3f}", s.coverage < 0.8)
            )
            ratio = c.rmse**2 / at["random", budget].rmse ** 2
            noise = float(6 / np.sqrt(c.seeds * c.models))
            targets.append(
                Target(
                    f"{file}, {budget} calls: cyclic no worse than random",
                    f"squared error {ratio:.3f} of it, 3 s.e. are {noise:.3f}",
                    ratio < 1 + noise,
                )
            )
    hanna = RecordedScores.load(data_file("hanna_multijudge"))
    votes = []
    if hanna.reference is not None:
        for m in range(len(hanna.models)):
            scores = JudgeScores.from_table(hanna.scores[m], judges=hanna.raters)
            human = np.asarray(np.nanmean(hanna.reference[m], axis=1), dtype=np.float64)
            votes.append((effective_votes(scores, truth=human).value, effective_votes(scores).value))
    against, among = np.mean(votes, axis=0)
    return Found(
        "Equal numbers of judge calls; truth is the panel mean over all recorded; items drawn with "
        "replacement.",
        ("file", "rotation", "calls", "bias", "rmse", "sq. error / cyclic", "coverage", "half-width"),
        tuple(rows),
        tuple(targets),
        (
            f"The 20 judges of hanna are worth {against:.1f} independent votes against the human labels "
            f"(mean over "
            f"models); their agreement alone would say {among:.1f}: the panel mean is not the truth.",
        ),
    )


def prices(quick: bool) -> Found:
    rows, ratios = [], []
    recorded = RecordedScores.load(data_file("judge_repeats"))
    seeds = 20 if quick else 1500
    rng = np.random.default_rng(3)
    orders = [np.argsort(np.argsort(rng.random(5))) for _ in range(2 if quick else 4)]
    for order in [np.arange(5), *orders]:
        price = [PRICES[i] for i in order]
        found = backtest_rotation(recorded, ["cyclic", "priced"], budgets=[500], seeds=seeds, prices=price)
        c, p = found.rows
        ratio = p.variance * p.cost / (c.variance * c.cost)
        ratios.append(ratio)
        error = ratio * 2 / np.sqrt(seeds)
        rows.append(
            (
                "judge_repeats",
                ", ".join(f"{x:g}" for x in price),
                f"{ratio:.3f} ±{error:.3f}",
                f"{c.coverage:.3f}",
                f"{p.coverage:.3f}",
            )
        )
    theory = np.sqrt(PRICES).sum() ** 2 / (5 * np.sum(PRICES))
    return Found(
        f"Variance times dollars of priced over cyclic, 500 calls, {seeds} seeds, prices 1, 2, 5, 15, 30 "
        f"in several "
        "orders over the judges.",
        ("file", "prices of the judges", "variance x dollars, priced / cyclic", "coverage cyclic", "priced"),
        tuple(rows),
        (
            Target(
                "priced below cyclic (expected .53 to .97)",
                f"{min(ratios):.3f} to {max(ratios):.3f}",
                max(ratios) < 1,
            ),
        ),
        (f"Theory with equal variances within judges: {theory:.3f}.",),
    )
