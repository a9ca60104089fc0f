"""A judged task under a budget: rows and facts that know how the scores were bought."""

from __future__ import annotations

from typing import Any

from evalbudget.judges.estimates import cost_rows, short_names
from evalbudget.judges.panel import PanelRows
from evalbudget_lm_eval.judges.rows import known


def judged_rows(score: str, found: PanelRows) -> dict[str, Any]:
    """Each judge's bias ``M_bias_<judge>`` with its ``_stderr``, and ``M_missing``.

    They take the place of the host's totals, which know nothing of repeats that were bought because of
    earlier scores.

    Args:
        score: the host's key ``metric,filter``.
        found: what the judges said.
    """
    metric, _, chosen = score.partition(",")
    rows: dict[str, Any] = {}
    for short, bias in zip(short_names(found.judges), found.biases(fixed=True).values(), strict=True):
        rows[f"{metric}_bias_{short},{chosen}"] = known(bias.value)
        rows[f"{metric}_bias_{short}_stderr,{chosen}"] = known(bias.standard_error)
    rows[f"{metric}_missing,{chosen}"] = int(found.scores.failed.sum())
    return rows


def judged_block(found: PanelRows) -> dict[str, Any]:
    """What each judge was asked and failed, and what the estimate is of."""
    return {
        "fixed_repeats": found.fixed_repeats,
        "per_judge": {
            judge: {"scores": row["calls"] - row["failed"], "failed": row["failed"]}
            for judge, row in cost_rows(found.scores).items()
        },
        "target": found.estimate.target,
        "method": found.estimate.method,
    }
