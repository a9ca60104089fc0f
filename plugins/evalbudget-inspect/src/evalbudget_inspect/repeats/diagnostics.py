"""What goes into the log's score metadata: where the budget went, every item's count and interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from inspect_ai.log import EvalSpec
from numpy.typing import NDArray

from evalbudget.judges import Call, PanelRows
from evalbudget.repeats import (
    LEVEL,
    BenchmarkMean,
    Outcome,
    Repeat,
    Summary,
    asked_in_vain,
    describe_mean,
    failing_items,
    item_columns,
    summarize,
)
from evalbudget.repeats.estimates import ItemReadings
from evalbudget_inspect.host.reducers import said_of_rows
from evalbudget_inspect.judges.dealing import Rotation
from evalbudget_inspect.judges.panel_report import panel_asked_for, panel_report
from evalbudget_inspect.repeats.config import Config
from evalbudget_inspect.repeats.purchase import RepeatPurchase


def asked_for(config: Config, score: str) -> dict[str, Any]:
    """What the user asked for, and the score that drives the sampler."""
    asked = {**config.as_json, "score": score}
    if config.panel is not None:
        asked |= panel_asked_for(config.panel)
    return asked


def outcome(book: RepeatPurchase) -> dict[str, Any]:
    """Where the budget went."""
    shared = {"processes": list(book.processes)} if book.processes else {}
    bought = book.as_json(book.account.failures, book.useful)
    return {**bought, "items": book.n_items_read, "sampler": book.sampler.name, **shared}


@dataclass(frozen=True)
class Diagnosis:
    """What the scores of one run say. Everything is computed when it is read, and once.

    Attributes:
        book: of the run.
        rotation: of its judges; None where they do not take turns.
        bounds: the smallest and the largest possible score, declared or known from the scorer.
        clusters: number of each item's cluster; None where items are independent of each other.
    """

    book: RepeatPurchase
    rotation: Rotation | None
    bounds: tuple[float, float] | None
    clusters: NDArray[np.int64] | None = None

    @property
    def _how(self) -> dict[str, Any]:
        sampler = self.book.sampler
        return {"allocation": sampler.allocation, "fixed_repeats": sampler.fixed_repeats}

    @cached_property
    def panel(self) -> PanelRows | None:
        """What the judges say; None where they do not take turns."""
        rotation = self.rotation
        if rotation is None:
            return None
        calls = []
        for reading in self.book.account.readings:
            cell, told = reading.request.cell, (reading.value, reading.request.phase)
            # a cell that failed before its judge was asked is no failure of the judge
            if reading.value is not None or rotation.was_called(cell.item, cell.epoch):
                judge = rotation.judge(cell.item, cell.epoch)
                score, phase = (math.nan if number is None else float(number) for number in told)
                calls.append(Call(cell.item, cell.epoch, judge, score, phase))
        return PanelRows(
            calls,
            rotation.panel.judges,
            n_items=len(self.book.sampler.design.items),
            kept=rotation.kept,
            weighs_judges=rotation.panel.weighs_judges,
            bounds=self.bounds,
            clusters=self.clusters,
            **self._how,
        )

    @cached_property
    def table(self) -> ItemReadings:
        """Readings of all items; where judges take turns, with their deviations from the panel taken out."""
        if self.panel is not None:
            return self.panel.corrected
        items = self.book.sampler.design.items
        return ItemReadings.of_bought(self.book.account.readings, len(items))

    @property
    def _in_vain(self) -> set[int]:
        return asked_in_vain(self.book.account.readings)

    @property
    def mean(self) -> BenchmarkMean:
        """What the host prints of the score that drives the sampler."""
        if self.panel is not None:
            return self.panel.mean
        return describe_mean(
            self.table if self.table.value.size else None,
            bounds=self.bounds,
            estimators=self.book.config.further,
            strata=self.book.strata,
            clusters=self.clusters,
            given_up=[cell.item for cell in self.book.book.closed],
            in_vain=self._in_vain,
            **self._how,
        )

    @cached_property
    def per_item(self) -> dict[str, Any]:
        """Every item's count, estimate and intervals, as columns.

        ``lower`` and ``upper`` cover 95% of the items on average (fixed-n); ``anytime_lower`` and
        ``anytime_upper``, where the score range is known, hold for each item however often one looks. Where
        judges take turns, their deviations from the panel are taken out, and there is no anytime interval.
        """
        bounds = self.bounds if self.panel is None else None  # corrected scores may leave the range
        columns = item_columns(self.table, bounds=bounds, **self._how)
        if self.panel is not None:
            columns["interval"] += ", of the panel's mean: judges' deviations taken out"
        return {"level": LEVEL, "id": list(self.book.sampler.design.items), **columns}

    @property
    def judges(self) -> dict[str, Any] | None:
        """What each was given, failed and used up; what the estimate speaks of, and what to beware of."""
        rotation = self.rotation
        if rotation is None or self.panel is None:
            return None
        unused = [] if rotation.unused is None else [rotation.unused]
        return panel_report(
            rotation.panel,
            self.panel,
            rotation.calls,
            usage=rotation.usage,
            notes=[*rotation.schedule.notes, *rotation.notes, *unused],
            one_scale=self.book.config.score_range is not None,
        )

    def summary(
        self,
        spec: EvalSpec,
        score: str,
        *,
        cluster: str | None = None,
        rows: Sequence[str] = (),
        changes: Sequence[str] = (),
    ) -> Summary:
        """The run in plain words.

        Args:
            spec: of the run.
            score: that drives the sampler.
            cluster: field by which items come in clusters; None for none.
            rows: names of the host's own rows of that score.
            changes: of the task, since earlier attempts that count.
        """
        book = self.book
        names = book.sampler.design.items
        weighed = self.panel if self.panel is not None and self.panel.weighs_judges else None
        return summarize(
            Outcome(
                task=spec.task,
                model=spec.model,
                names=names,
                table=self.table,
                columns=self.per_item,
                mean=self.mean,
                budget=None if book.config.budget is None else book.budget.amount,
                spent=book.spent,
                failures=book.account.failures,
                closed=book.closed,
                failing=None if book.resumed else failing_items(book.account.readings, names),
                stop_reason=why_unfinished(book)
                if book.broken_off or not book.finished
                else book.stop_reason,
                bounds=self.bounds,
                judges=() if weighed is None else weighed.by_epoch.scoring_panel().judges,
                judged=bool(spec.model_roles) and self.panel is None,
                kept=book.config.repeat is Repeat.JUDGE,
                score=score,
                drawn=book.strata is not None,
                strata=book.config.strata,
                cluster=cluster,
                beside=(
                    *said_of_rows(
                        score, rows, spec.config.epochs_reducer or (), book.sampler.allocation, self.table
                    ),
                    *(f"{change}." for change in changes),
                ),
                processes=max(1, len(book.processes)),
                cached=book.cached,
                in_vain=len(self._in_vain),
                **self._money,
            )
        )

    @property
    def _money(self) -> dict[str, Any]:
        bill = self.book.bill
        if bill is None:
            return {}
        return {"unit": bill.cap.unit.value, "costs": bill.rows, "wasted": bill.wasted(self.book.useful)}


def why_unfinished(book: RepeatPurchase) -> str:
    """Why a run ended before its budget was used up."""
    if book.cut_off:
        return f"interrupted; {book.cut_off:,} under way given up: they may be billed, and count as spent"
    if book.broken_off:
        return f"by an error; {book.broken_off:,} under way cut off: they may be billed, and count as spent"
    return "interrupted" if book.broken_off is None else "by an error"
