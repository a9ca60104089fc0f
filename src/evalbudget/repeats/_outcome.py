"""A budgeted run as its host knows it: what the summary is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalbudget.repeats._failing_items import FailingItems
from evalbudget.repeats._mean_rows import BenchmarkMean
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.run import BillRow


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A run as its host knows it.

    Attributes:
        task: its name.
        model: what was evaluated.
        names: of all items, in order.
        table: readings of all items; where judges take turns, with their deviations taken out.
        columns: every item's estimate and interval (:func:`~evalbudget.repeats.item_columns`).
        mean: the benchmark mean, as the host prints it.
        budget: in scores; None where there was none.
        spent: of it.
        failures: how many calls gave no score, by reason.
        closed: items that failed too often to be asked again.
        failing: items on which calls fail more than chance explains; None where they may fail at random.
        stop_reason: why nothing more was asked.
        bounds: the smallest and the largest possible score, declared or known from the scorer.
        judges: that took turns; empty where they did not.
        judged: a model gave the scores.
        kept: all readings of an item are of one answer, scored again and again.
        score: whose scores these are; empty if there is only one.
        unit: what a budget of 1 buys, in the plural; ``usd`` and ``tokens`` for money and tokens.
        costs: what was paid for, by model and role; empty where the budget counts scores.
        wasted: of what was spent, for what brought no reading, in units of the budget.
        range_flag: how this host is told the range of the scores.
        judges_flag: how it is told of several judges; empty where it cannot be told.
        drawn: the items that were read are a random sample.
        strata: field in proportion to whose values it was drawn; None for none.
        cluster: field by which items come in clusters; None where they are independent of each other.
        beside: what the host's own rows are of, a sentence each, where it is not what the estimate is of.
        processes: that shared the budget.
        in_vain: items that were asked and have no score.
        cached: readings of answers that came out of the host's cache.
        dear: a reading costs more than one of the budget, so that plain epochs are not told in readings.
    """

    task: str
    model: str
    names: Sequence[str]
    table: ItemReadings
    columns: Mapping[str, Any]
    mean: BenchmarkMean
    budget: float | None
    spent: float
    failures: Mapping[str, int] = field(default_factory=dict)
    closed: Sequence[str] = ()
    failing: FailingItems | None = None
    stop_reason: str = ""
    bounds: tuple[float, float] | None = None
    judges: Sequence[str] = ()
    judged: bool = False
    kept: bool = False
    score: str = ""
    unit: str = "scores"
    costs: Sequence[BillRow] = ()
    wasted: float = 0.0
    range_flag: str = "--score-range"
    judges_flag: str = "--judges"
    drawn: bool = False
    strata: str | None = None
    cluster: str | None = None
    beside: Sequence[str] = ()
    processes: int = 1
    in_vain: int = 0
    cached: int = 0
    dear: bool = False

    @property
    def without_score(self) -> int:
        """Items that are not in the estimate though they were asked, or were to be."""
        rows = self.mean.rows
        if self.drawn and ("full_lower" in rows or "lower" not in rows):  # others were never to be asked
            return self.in_vain
        return self.table.n_items - int(rows.get("items", 0))

    @property
    def with_them(self) -> tuple[float, float] | None:
        """What the estimate would be if they scored the lowest, and the highest.

        None where there are none, or strata weigh. Where the range of scores is unknown it is 0 to 1 if all
        are in it, or else the one seen; one score alone shows none.
        """
        rows, values = self.mean.rows, self.table.value
        if not self.without_score or "estimate" not in rows or self.strata is not None:
            return None
        low, high = self.bounds or (float(values.min()), float(values.max()))
        if self.bounds is None and low >= 0.0 and high <= 1.0:
            low, high = 0.0, 1.0
        if low == high:
            return None
        share = self.without_score / (self.without_score + rows["items"])
        known = (1.0 - share) * rows["estimate"]
        return known + share * low, known + share * high
