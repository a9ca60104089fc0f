"""What the log says of a panel: what each judge was given, failed and cost, and what to beware of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspect_ai.model import ModelUsage

from evalbudget.estimate import Estimate
from evalbudget.judges.estimates import (
    JudgeScores,
    count_rows,
    diagnose_scales,
    judge_mean_over_sampled_items,
    panel_mean,
)
from evalbudget_inspect.judges.panel import Panel


def panel_asked_for(panel: Panel) -> dict[str, Any]:
    """The panel as the user named it."""
    asked: dict[str, Any] = {"judges": list(panel.judges), "rotation": panel.rotation}
    if panel.owner is None:
        asked["judge_role"] = panel.role
    if any(not judge.is_plain for judge in panel.models):
        asked["judge_models"] = {judge.name: judge.spec() for judge in panel.models}
    if panel.prices is not None:
        asked["judge_prices"] = dict(zip(panel.judges, panel.prices, strict=True))
    return asked


def panel_report(
    panel: Panel,
    scores: JudgeScores,
    calls: Sequence[int],
    *,
    estimate: Estimate | None = None,
    usage: Sequence[ModelUsage] | None = None,
    notes: Sequence[str] = (),
    one_scale: bool = False,
) -> dict[str, Any]:
    """Judges, target and method of the estimate, and notes.

    Args:
        panel: the judges.
        scores: theirs.
        calls: of each judge, failed ones included.
        estimate: of the panel; None for that of all scores.
        usage: of each judge; None if unknown.
        notes: said first.
        one_scale: the scale is declared, so the judges need not seem to share one.
    """
    per_judge: dict[str, dict[str, Any]] = {}
    for j, name in enumerate(panel.judges):
        per_judge[name] = {"calls": int(calls[j]), "failed": int(scores.failed[j])}
        if usage is not None and (panel.models or usage[j].total_tokens):
            per_judge[name]["tokens"] = usage[j].total_tokens
        if usage is not None and usage[j].total_cost is not None:
            per_judge[name]["cost"] = usage[j].total_cost
        if panel.prices is not None:
            per_judge[name]["price"] = panel.prices[j] * int(calls[j])
    if estimate is None:
        estimate = (panel_mean if panel.weighs_judges else judge_mean_over_sampled_items)(scores)
    return {
        "per_judge": per_judge,
        "counts": {name: int(n) for name, n in count_rows(scores).items()},
        "target": estimate.target,
        "method": f"{estimate.method}; interval {estimate.validity.value}, asymptotic, items sampled",
        "notes": [*notes, *_notes(scores, one_scale)],
    }


def _notes(scores: JudgeScores, one_scale: bool) -> list[str]:
    notes = [
        f"judge {name!r} failed in all of its {failed} calls; the estimate is of the others alone"
        for name, failed in zip(scores.judges, scores.failed.tolist(), strict=True)
        if failed and name in scores.silent
    ]
    scales = diagnose_scales(scores)
    if not one_scale and not scales.one_scale:
        notes.append(
            f"the judges seem to score on {scales}; a mean over different scales means little: ask all "
            "judges for the same one, or declare it with --score-range if they are asked for it"
        )
    return notes
