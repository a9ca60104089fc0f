"""What the log says of a panel: what each judge was given, failed and cost, and what to beware of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inspect_ai.model import ModelUsage

from evalbudget.judges import PanelRows
from evalbudget.judges.estimates import JudgeScores, cost_rows, count_rows, diagnose_scales
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
    found: PanelRows,
    calls: Sequence[int],
    *,
    usage: Sequence[ModelUsage] | None = None,
    notes: Sequence[str] = (),
    one_scale: bool = False,
) -> dict[str, Any]:
    """Judges, target and method of the estimate, and notes.

    Args:
        panel: the judges.
        found: what they said.
        calls: of each judge, failed ones included.
        usage: of each judge; None if unknown.
        notes: said first.
        one_scale: the scale is declared, so the judges need not seem to share one.
    """
    per_judge: dict[str, dict[str, Any]] = {**cost_rows(found.scores, calls=calls, prices=panel.prices)}
    for name, used in zip(panel.judges, usage or (), strict=usage is not None):
        if panel.models or used.total_tokens:
            per_judge[name]["tokens"] = used.total_tokens
        if used.total_cost is not None:
            per_judge[name]["cost"] = used.total_cost
    estimate = found.estimate
    return {
        "per_judge": per_judge,
        "counts": {name: int(n) for name, n in count_rows(found.scores).items()},
        "target": estimate.target,
        "method": f"{estimate.method}; interval {estimate.validity.value}, asymptotic, items sampled",
        "notes": [*notes, *_notes(found.scores, one_scale)],
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
