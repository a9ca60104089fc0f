"""What goes into the log's score metadata: where the budget went, every item's count and interval."""

from __future__ import annotations

import json
import math
from typing import Any

from inspect_ai.log import EvalSpec

from evalbudget.judges.panel import Call, PanelRows
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.repeats.rows import LEVEL, BenchmarkMean, describe_mean, item_columns
from evalbudget.repeats.summary import Outcome, Summary, summarize
from evalbudget_inspect.judges.panel_report import panel_asked_for, panel_report
from evalbudget_inspect.judges.rotating import Rotation
from evalbudget_inspect.repeats.allocation import Allocation
from evalbudget_inspect.repeats.config import Config


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
        asked |= panel_asked_for(config.panel)
    return asked


def outcome(allocation: Allocation) -> dict[str, Any]:
    """Where the budget went."""
    items = allocation.sampler.design.items
    purchase = allocation.purchase
    failures = sorted(purchase.tally.errors.items(), key=lambda e: -e[1])
    return {
        "budget_scores": None if allocation.config.budget is None else int(allocation.budget.amount),
        "spent": purchase.ledger.spent,
        "items": len({r.request.cell.item for r in purchase.journal.readings if r.value is not None}),
        "readings": purchase.tally.readings,
        "failed": purchase.tally.failed,
        "failures": dict(failures[:5]),
        "closed_items": [items[cell.item] for cell in allocation.sampler.closed],
        "stop_reason": purchase.stop_reason,
        "chosen": getattr(allocation.sampler, "chosen", None),
        "allocation": allocation.sampler.allocation.value,
        "fixed_repeats": allocation.sampler.fixed_repeats,
    }


def panel_outcome(allocation: Allocation, rotation: Rotation) -> dict[str, Any]:
    """What each judge was given, failed and used up; what the estimate speaks of, and what to beware of."""
    unused = [] if rotation.unused is None else [rotation.unused]
    return panel_report(
        rotation.panel,
        _panel_rows(allocation, rotation),
        rotation.calls,
        usage=rotation.usage,
        notes=[*rotation.schedule.notes, *rotation.notes, *unused],
        one_scale=allocation.config.score_range is not None,
    )


def _panel_rows(
    allocation: Allocation, rotation: Rotation, bounds: tuple[float, float] | None = None
) -> PanelRows:
    # a cell that failed before its judge was asked is no failure of the judge
    cells = [
        (r.request, r.value)
        for r in allocation.purchase.journal.readings
        if r.value is not None or rotation.was_called(r.request.cell.item, r.request.cell.epoch)
    ]
    calls = [
        Call(
            request.cell.item,
            request.cell.epoch,
            rotation.judge(request.cell.item, request.cell.epoch),
            math.nan if value is None else value,
            math.nan if request.weight is None else request.weight,
        )
        for request, value in cells
    ]
    return PanelRows(
        calls,
        rotation.panel.judges,
        n_items=len(allocation.sampler.design.items),
        kept=rotation.kept,
        weighs_judges=rotation.panel.weighs_judges,
        allocation=allocation.sampler.allocation,
        fixed_repeats=allocation.sampler.fixed_repeats,
        bounds=bounds,
    )


def readings_of(allocation: Allocation, rotation: Rotation | None) -> ItemReadings:
    """Readings of all items; where judges take turns, with their deviations from the panel taken out."""
    if rotation is not None:
        return _panel_rows(allocation, rotation).corrected
    items = allocation.sampler.design.items
    return ItemReadings.of_bought(allocation.purchase.journal.readings, len(items))


def benchmark_mean(
    allocation: Allocation, rotation: Rotation | None, bounds: tuple[float, float] | None
) -> BenchmarkMean:
    """What the host prints of the scores that drive the sampler.

    Args:
        allocation: of the run.
        rotation: of its judges; None where they do not take turns.
        bounds: the smallest and the largest possible score, declared or known from the scorer.
    """
    if rotation is not None:
        return _panel_rows(allocation, rotation, bounds).mean
    table = readings_of(allocation, None)
    return describe_mean(
        table if table.value.size else None,
        allocation=allocation.sampler.allocation,
        fixed_repeats=allocation.sampler.fixed_repeats,
        bounds=bounds,
    )


def per_item(
    allocation: Allocation, rotation: Rotation | None, bounds: tuple[float, float] | None
) -> dict[str, Any]:
    """Every item's count, estimate and intervals, as columns.

    ``lower`` and ``upper`` cover 95% of the items on average (fixed-n); ``anytime_lower`` and
    ``anytime_upper``, where the score range is known, hold for each item however often one looks. Where
    judges take turns, their deviations from the panel are taken out, and there is no anytime interval.

    Args:
        allocation: of the run.
        rotation: of its judges; None where they do not take turns.
        bounds: the smallest and the largest possible score, declared or known from the scorer.
    """
    columns = item_columns(
        readings_of(allocation, rotation),
        allocation=allocation.sampler.allocation,
        fixed_repeats=allocation.sampler.fixed_repeats,
        bounds=bounds if rotation is None else None,  # corrected scores may leave the range
    )
    if rotation is not None:
        columns["interval"] += ", of the panel's mean: judges' deviations taken out"
    return {"level": LEVEL, "id": list(allocation.sampler.design.items), **columns}


def summary_of(
    allocation: Allocation,
    rotation: Rotation | None,
    bounds: tuple[float, float] | None,
    spec: EvalSpec,
    score: str,
) -> Summary:
    """The run in plain words.

    Args:
        allocation: of the run.
        rotation: of its judges; None where they do not take turns.
        bounds: the smallest and the largest possible score, declared or known from the scorer.
        spec: of the run.
        score: that drives the sampler.
    """
    names = allocation.sampler.design.items
    judges: list[str] = []
    if rotation is not None and rotation.panel.weighs_judges:
        judges = list(_panel_rows(allocation, rotation).by_epoch.scoring_panel().judges)
    return summarize(
        Outcome(
            task=spec.task,
            model=spec.model,
            names=names,
            table=readings_of(allocation, rotation),
            columns=per_item(allocation, rotation, bounds),
            mean=benchmark_mean(allocation, rotation, bounds),
            budget=None if allocation.config.budget is None else allocation.budget.amount,
            spent=allocation.purchase.ledger.spent,
            failures=allocation.purchase.tally.errors,
            closed=[names[cell.item] for cell in allocation.sampler.closed],
            stop_reason=allocation.purchase.stop_reason if allocation.purchase.finished else "interrupted",
            bounds=bounds,
            judges=judges,
            judged=bool(spec.model_roles) and rotation is None,
            score=score,
        )
    )
