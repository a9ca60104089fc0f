"""Our rows in the host's tables and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalbudget import Allocation
from evalbudget.estimators import ItemReadings
from evalbudget.repeats import mean_estimates

# the host's column of standard errors takes the row NAME_stderr for the error of NAME, and its own standard
# errors are over the documents; so ours come as two rows, the second over the repeats alone
_ROWS = {
    "": "estimate",
    "_stderr": "sampled_items_stderr",
    "_ci_lower": "sampled_items_lower",
    "_ci_upper": "sampled_items_upper",
    "_rep": "estimate",
    "_rep_stderr": "stderr",
    "_rep_ci_lower": "lower",
    "_rep_ci_upper": "upper",
}

Scored = tuple[int, int, float]
"""Document, epoch, score."""


def estimate_rows(
    score: str,
    scored: Sequence[Scored],
    *,
    allocation: Allocation,
    fixed_repeats: int,
    bounds: tuple[float, float] | None,
) -> dict[str, Any]:
    """Rows of one task for the host's ``results``, by ``metric,filter``.

    ``M_estimate`` with ``_stderr``, ``_ci_lower`` and ``_ci_upper`` answers what the host's own standard
    error answers: documents are a sample of all that could have been asked, repeats vary. ``M_estimate_rep``
    with the same endings takes the documents as given: only the repeats are random.

    Args:
        score: the host's key ``metric,filter``.
        scored: what was read of the task.
        allocation: of the sampler.
        fixed_repeats: readings every document got whatever its scores were.
        bounds: the smallest and the largest possible score, if declared.
    """
    metric, _, chosen = score.partition(",")
    found = mean_estimates(
        readings_of(scored), allocation=allocation, fixed_repeats=fixed_repeats, bounds=bounds
    )
    rows: dict[str, Any] = {}
    for ending, name in _ROWS.items():
        if name in found:
            rows[f"{metric}_estimate{ending},{chosen}"] = found[name]
        elif ending.endswith("_stderr") and "estimate" in found:
            rows[f"{metric}_estimate{ending},{chosen}"] = "N/A"  # as the host has it
    return rows


def readings_of(scored: Sequence[Scored]) -> ItemReadings | None:
    """The documents that were scored; None if there are none."""
    index: dict[int, int] = {}
    for document, _, _ in sorted(scored):
        index.setdefault(document, len(index))
    if not index:
        return None
    return ItemReadings.of(
        [index[document] for document, _, _ in scored],
        [epoch for _, epoch, _ in scored],
        [value for _, _, value in scored],
        n_items=len(index),
    )


def add_rows(results: dict[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Put the rows of each task among the host's."""
    for task, own in rows.items():
        results["results"][task].update(own)
