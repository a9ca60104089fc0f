"""In place of the paper's Figures 6 and 7: how item means rank with human ratings, against budget."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kendalltau, pearsonr, spearmanr

from evalbudget.backtest import RecordedScores
from evalbudget.replay._contestant import contestants
from judges_sections.found import Table
from papers_sections.ratings_pool import pool_of_stored
from papers_sections.worst_items import item_means
from places import data_file

Floats = NDArray[np.float64]

BUDGETS = (1_016, 5_080, 20_320, 30_000, 50_000, 100_000)
SAMPLERS = ("uniform", "robin-hood", "eb-bernstein")
SUBSETS = 8


def correlations(quick: bool) -> Table:
    """Pearson, Spearman and Kendall of the items' means with the mean human rating."""
    items = 24 if quick else 1016
    judges, human = cells()
    budgets = tuple(budget * items // 1016 for budget in BUDGETS)
    found: dict[str, list[Floats]] = {name: [] for name in SAMPLERS}
    for subset in range(2 if quick else SUBSETS):
        chosen = np.random.default_rng(subset).permutation(len(human))[:items]
        pool = pool_of_stored("hanna", judges[chosen])
        for name in SAMPLERS:
            (entrant,) = contestants([name], {})
            means = item_means(pool, entrant, budgets, subset)
            found[name].append(np.array([_three(each, human[chosen]) for each in means]))
    rows = []
    for b, budget in enumerate(BUDGETS):
        for name, runs in found.items():
            each = np.array(runs)[:, b]
            mean, error = each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(len(each))
            rows.append(
                (f"{budget:,}", name, *(f"{m:.3f} ±{e:.3f}" for m, e in zip(mean, error, strict=True)))
            )
    return Table(
        "In place of Figures 6 and 7: correlation with human ratings",
        ("budget", "sampler", "Pearson", "Spearman", "Kendall"),
        tuple(rows),
        (
            f"Not the paper's data: {items:,} of the {len(human):,} stories x criteria of hanna_multijudge, "
            f"another random choice in each of {len(found['uniform'])} runs; a reading is one of the 20 "
            "recorded judge scores, drawn with replacement, the human rating the mean of three. ± is one "
            "standard error over runs. robin-hood is uniform until 20,320. The paper says that correlations "
            "rise with budget, and prints no figures.",
        ),
    )


def cells() -> tuple[Floats, Floats]:
    """Scores of all judges, shape (n_cells, 20), and the mean human rating, shape (n_cells,)."""
    hanna = RecordedScores.load(data_file("hanna_multijudge"))
    assert hanna.reference is not None
    judges = hanna.scores[:, :, :, 0].reshape(-1, hanna.scores.shape[2]).astype(np.float64)
    human = np.nanmean(hanna.reference.reshape(len(judges), -1).astype(np.float64), axis=1)
    enough = (~np.isnan(judges)).sum(axis=1) >= 2
    return judges[enough], human[enough]


def _three(means: Floats, human: Floats) -> list[float]:
    read = ~np.isnan(means)
    x, y = means[read], human[read]
    return [
        float(pearsonr(x, y).statistic),
        float(spearmanr(x, y).statistic),
        float(kendalltau(x, y).statistic),
    ]
