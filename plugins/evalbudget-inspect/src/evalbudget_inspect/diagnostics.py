"""What goes into the log's score metadata: where the budget went, every item's count and interval."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from evalbudget.estimators import ItemReadings, betting, eb_wilson
from evalbudget.estimators.judges import JudgeScores, diagnose_scales, judge_corrected
from evalbudget_inspect.allocation import Allocation
from evalbudget_inspect.config import Config
from evalbudget_inspect.panel_metrics import Call, judge_scores, panel_estimate
from evalbudget_inspect.rotating import Rotation

LEVEL = 0.95
_DIGITS = 6


def asked_for(config: Config, score: str) -> dict[str, Any]:
    """What the user asked for."""
    asked: dict[str, Any] = {
        "sampler": config.sampler,
        "budget": config.budget,
        "repeat": config.repeat.value,
        "score": score,
        "score_range": list(config.score_range) if config.score_range else None,
        "seed": config.seed,
        "options": json.loads(json.dumps(dict(config.options), default=str)),
    }
    if config.panel is not None:
        panel = config.panel
        asked |= {"judges": list(panel.judges), "rotation": panel.rotation, "judge_role": panel.role}
        if panel.prices is not None:
            asked["judge_prices"] = dict(zip(panel.judges, panel.prices, strict=True))
    return asked


def outcome(allocation: Allocation) -> dict[str, Any]:
    """Where the budget went."""
    items = allocation.sampler.design.items
    failures = sorted(allocation.tally.errors.items(), key=lambda e: -e[1])
    return {
        "budget_scores": None if allocation.config.budget is None else int(allocation.budget.amount),
        "spent": allocation.ledger.spent,
        "readings": allocation.tally.readings,
        "failed": allocation.tally.failed,
        "failures": dict(failures[:5]),
        "closed_items": [items[cell.item] for cell in allocation.sampler.closed],
        "stop_reason": allocation.stop_reason,
        "allocation": allocation.sampler.allocation.value,
        "fixed_repeats": allocation.sampler.fixed_repeats,
    }


def panel_outcome(allocation: Allocation, rotation: Rotation) -> dict[str, Any]:
    """What each judge was given, failed and used up; what the estimate speaks of, and what to beware of."""
    panel = rotation.panel
    calls = _calls(allocation, rotation)
    scores = judge_scores(calls, panel.judges, kept=rotation.kept)
    given = np.bincount([judge for _, _, judge, _ in calls], minlength=len(panel.judges)).tolist()
    per_judge: dict[str, dict[str, Any]] = {}
    for j, name in enumerate(panel.judges):
        usage = rotation.usage[j]
        per_judge[name] = {"calls": given[j], "failed": int(scores.failed[j]), "tokens": usage.total_tokens}
        if usage.total_cost is not None:
            per_judge[name]["cost"] = usage.total_cost
        if panel.prices is not None:
            per_judge[name]["price"] = panel.prices[j] * given[j]
    estimate = panel_estimate(
        calls,
        panel.judges,
        kept=rotation.kept,
        weighs_judges=panel.weighs_judges,
        allocation=allocation.sampler.allocation,
        fixed_repeats=allocation.sampler.fixed_repeats,
    )
    return {
        "per_judge": per_judge,
        "target": estimate.target,
        "method": f"{estimate.method}; interval {estimate.validity.value}, asymptotic, items sampled",
        "notes": [*rotation.schedule.notes, *_panel_notes(scores, rotation, allocation.config)],
    }


def _calls(allocation: Allocation, rotation: Rotation) -> list[Call]:
    cells = [(r.request.cell, r.value) for r in allocation.journal.readings if r.cost > 0]
    return [
        (
            cell.item,
            cell.epoch,
            rotation.judge(cell.item, cell.epoch),
            float("nan") if value is None else value,
        )
        for cell, value in cells
    ]


def _panel_notes(scores: JudgeScores, rotation: Rotation, config: Config) -> list[str]:
    notes = [] if rotation.unused is None else [rotation.unused]
    for name, failed in zip(scores.judges, scores.failed.tolist(), strict=True):
        if failed and name in scores.silent:
            notes.append(
                f"judge {name!r} failed in all of its {failed} calls; the estimate is of the others alone"
            )
    scales = diagnose_scales(scores)
    if config.score_range is None and not scales.one_scale:
        notes.append(
            f"the judges seem to score on {scales}; a mean over different scales means little: ask all "
            "judges for the same one, or declare it with --score-range if they are asked for it"
        )
    return notes


def per_item(allocation: Allocation, rotation: Rotation | None) -> dict[str, Any]:
    """Every item's count, estimate and intervals, as columns.

    ``lower`` and ``upper`` cover 95% of the items on average (fixed-n); ``anytime_lower`` and
    ``anytime_upper``, where the score range is known, hold for each item however often one looks. Where
    judges take turns, their deviations from the panel are taken out, and there is no anytime interval.
    """
    names = allocation.sampler.design.items
    bounds = allocation.config.score_range
    if rotation is None:
        readings = [r for r in allocation.journal.readings if r.value is not None]
        table = ItemReadings.of(
            [r.request.cell.item for r in readings],
            [r.request.cell.epoch for r in readings],
            [r.value for r in readings if r.value is not None],
            n_items=len(names),
        )
    else:
        scores = judge_scores(_calls(allocation, rotation), rotation.panel.judges, kept=False, n=len(names))
        table, bounds = judge_corrected(scores), None  # corrected scores may leave the range
    estimates = eb_wilson(table, bounds=bounds, fixed_repeats=allocation.sampler.fixed_repeats)
    average = estimates.confidence_intervals(LEVEL)
    columns: dict[str, Any] = {
        "level": LEVEL,
        "id": list(names),
        "readings": table.counts.tolist(),
        "estimate": _rounded(estimates.value),
        "lower": _rounded(average.low),
        "upper": _rounded(average.high),
        "interval": f"{estimates.method}, {estimates.validity.value}, {estimates.coverage.value} coverage",
    }
    if rotation is not None:
        columns["interval"] += ", of the panel's mean: judges' deviations taken out"
    if bounds is not None:
        sequence = betting(table, bounds=bounds, allocation=allocation.sampler.allocation)
        guaranteed = sequence.confidence_intervals(LEVEL)
        columns["anytime_lower"] = _rounded(guaranteed.low)
        columns["anytime_upper"] = _rounded(guaranteed.high)
        columns["anytime_interval"] = (
            f"{sequence.method}, {sequence.validity.value}, {sequence.coverage.value} item"
        )
    return columns


def _rounded(values: np.ndarray[Any, np.dtype[np.float64]]) -> list[float | None]:
    return [round(v, _DIGITS) if np.isfinite(v) else None for v in values.tolist()]
