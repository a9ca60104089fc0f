"""Table 2 of CyclicJudge: components and F statistics, estimated anew from simulated tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evalbudget.judges.estimates import Source, variance_components
from judges_sections.found import Floats, Table
from papers_sections.judge_world import MODELS, SCENARIOS, scores_of
from references.anova import variance_components_literal

ORDER = {
    "scenario": Source.ITEM,
    "generation": Source.GENERATION,
    "judge": Source.JUDGE,
    "residual": Source.RESIDUAL,
}


@dataclass(frozen=True)
class Components:
    """Estimates from many tables.

    Attributes:
        table: finished.
        off: largest distance of a mean from the published value, in standard errors, by method.
        f: mean F statistic of each model.
        share: of the judge in the variance of one judge's mean at n = 80, m = 1, of each model.
    """

    table: Table
    off: dict[str, float]
    f: dict[str, float]
    share: dict[str, float]


def components(draws: int) -> Components:
    """Estimate the components of ``draws`` tables per model by both methods."""
    rows, off, f, share = [], {"G study": 0.0, "literal ANOVA": 0.0}, {}, {}
    for name, model in MODELS.items():
        rng = np.random.default_rng([2, int(model.f)])
        found: dict[str, list[list[float]]] = {method: [] for method in off}
        statistics = []
        for _ in range(draws):
            scores = scores_of(model.table(rng))
            literal, statistic = variance_components_literal(scores)
            for method, values in zip(off, (variance_components(scores), literal), strict=True):
                found[method].append([values[source] for source in ORDER.values()])
            statistics.append(statistic)
        at = {method: _mean_and_error(np.array(values)) for method, values in found.items()}
        spread = np.std(found["G study"], axis=0, ddof=1)
        for place, (source, published) in enumerate(zip(ORDER, model.components, strict=True)):
            shown = []
            for method, (mean, error) in at.items():
                off[method] = max(off[method], abs(mean[place] - published) / error[place])
                shown.append(f"{mean[place]:.3f} ±{error[place]:.3f}")
            rows.append((name, source, f"{published:.3f}", *shown, f"{spread[place]:.3f}"))
        f[name] = float(np.mean(statistics))
        error_f = float(np.std(statistics, ddof=1))
        rows.append(
            (
                name,
                "F(4, 3196)",
                f"{model.f:g}",
                "-",
                f"{f[name]:.1f} ±{error_f / np.sqrt(draws):.1f}",
                f"{error_f:.1f}",
            )
        )
        item, generation, judge, residual = at["literal ANOVA"][0]
        share[name] = judge / ((item + generation + residual) / SCENARIOS + judge)
    return Components(
        Table(
            "Table 2: variance components",
            ("model", "component", "published", "G study", "literal ANOVA", "spread of one table"),
            tuple(rows),
            (
                f"Means of {draws} tables of 80 x 10 x 5 scores, ± one standard error. The last column is "
                "the standard deviation of one table's estimate by the G study (of F, by the ANOVA): so far "
                "off may the paper's own figures be.",
            ),
        ),
        off,
        f,
        share,
    )


def _mean_and_error(values: Floats) -> tuple[Floats, Floats]:
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))
