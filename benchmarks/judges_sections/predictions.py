"""Variances that a D study predicts, against fresh evaluations."""

from __future__ import annotations

import numpy as np

from evalbudget.judges._plan import Prices, forecast
from evalbudget.judges.estimates import (
    JudgeScores,
    judge_mean_over_sampled_items,
    panel_mean,
    variance_components,
)
from evalbudget.judges.schedules import All, Cyclic, JudgeSchedule, Random
from judges_sections.found import Found, Target
from papers_sections.judge_world import JUDGES, MODELS, scores_of

CLASSES: dict[str, type[JudgeSchedule]] = {"all": All, "random": Random, "cyclic": Cyclic}


def predictions(quick: bool) -> Found:
    n, K, R = 80, 5, 50 if quick else 2000
    model = MODELS["GPT"]
    rng = np.random.default_rng(2)
    pilot = variance_components(scores_of(model.table(rng, 40 if quick else 4000)))
    errors: dict[tuple[str, int], list[float]] = {}
    items = [str(i) for i in range(n)]
    for seed in range(R):
        table = model.table(rng)
        for name, cls in CLASSES.items():
            for calls in (5, 10):
                m = calls // K if name == "all" else calls
                a = cls(items, JUDGES, epochs=m, seed=seed).assign()
                value = table[a.item, a.judge, a.epoch]
                scores = JudgeScores.of(a.item, a.epoch, a.judge, value, judges=JUDGES, n_items=n)
                raw = not cls.weighs_judges
                estimate = judge_mean_over_sampled_items(scores) if raw else panel_mean(scores)
                errors.setdefault((name, calls), []).append(estimate.value)
    rows, targets = [], []
    for (name, calls), found in errors.items():
        m = calls // K if name == "all" else calls
        predicted = forecast(pilot, name, m, Prices(np.ones(K))).variance / n
        measured, ratio = float(np.var(found)), float(np.var(found)) / predicted
        without = predicted - pilot["item"] / n
        rows.append(
            (name, str(calls), f"{predicted:.5f}", f"{measured:.5f}", f"{ratio:.3f}", f"{without:.5f}")
        )
        targets.append(
            Target(
                f"{name}, {calls} calls: predicted",
                f"measured/predicted {ratio:.3f}",
                abs(ratio - 1) < 5 * np.sqrt(2 / R),
            )
        )
    v = {key: float(np.var(found)) for key, found in errors.items()}
    cut = 1 - v["cyclic", 5] / v["random", 5]
    f_b, f_c = (forecast(pilot, s, 5, Prices(np.ones(K))).variance for s in ("random", "cyclic"))
    net = 1 - (f_c - pilot["item"]) / (f_b - pilot["item"])
    return Found(
        f"Predicted variance of the panel mean (D study) against {R} fresh evaluations, n = 80, K = 5; "
        "GPT's column of the paper's Table 2, as on [the page of the papers](papers.md).",
        ("rotation", "calls per item", "predicted", "measured", "ratio", "without item variance"),
        tuple(rows),
        tuple(targets),
        (
            f"Random to cyclic at 5 calls: predicted {1 - f_c / f_b:.1%} less variance in all (measured "
            f"{cut:.1%} ±{2 / np.sqrt(R):.1%}), {net:.1%} without the items' share.",
        ),
    )
