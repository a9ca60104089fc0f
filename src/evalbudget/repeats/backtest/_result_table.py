"""What a backtest found: rows, a table to look at, JSON to keep."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from evalbudget._fields import Shown, short
from evalbudget.replay._rows import Replayed, asked, table_of
from evalbudget.tables import PrintableTable


@dataclass(frozen=True, slots=True)
class Average:
    """A mean over pools and seeds.

    Attributes:
        mean: over seeds within each pool, then over pools.
        stderr: what other seeds would change, the pools being given; nan for a single seed.
    """

    mean: float
    stderr: float

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Average:
        """Average shape (n_pools, n_seeds)."""
        n_pools, n_seeds = values.shape
        stderr = math.nan
        if n_seeds > 1:
            stderr = math.sqrt(float((values.var(axis=1, ddof=1) / n_seeds).sum())) / n_pools
        return cls(float(values.mean()), stderr)

    @classmethod
    def ratio(cls, values: NDArray[np.float64], baseline: NDArray[np.float64]) -> Average:
        """Mean over pools of mean(values) / mean(baseline), both (n_pools, n_seeds) and paired by seed.

        Pools whose baseline is 0 are left out; nan if that leaves none.
        """
        base = baseline.mean(axis=1)
        defined = base > 0
        if not defined.any():
            return cls(math.nan, math.nan)
        values, baseline, base = values[defined], baseline[defined], base[defined]
        ratios = values.mean(axis=1) / base
        residuals = (values - ratios[:, None] * baseline) / base[:, None]
        return cls(float(ratios.mean()), cls.of(residuals).stderr)

    def __str__(self) -> str:
        if math.isnan(self.stderr) or math.isnan(self.mean):
            return short(self.mean, 3)
        decimals = 0 if abs(self.mean) >= 100 else 3
        return f"{self.mean:.{decimals}f} ±" + f"{self.stderr:.{decimals}f}".removeprefix("0")


_UNKNOWN = Average(math.nan, math.nan)


def _readings(row: Row) -> str:
    return f"{row.readings:,}" if row.reason is None else "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One sampler at one budget.

    Attributes:
        sampler: its name.
        budget: readings per pool, the rounded mean where pools differ in size (``20x``); dollars per pool
            where it is in money.
        seeds: how many.
        objective: what the samplers were told to minimise, and what ``ratio`` compares.
        worst_item_error: max_i abs(estimate_i - true_i); an item's estimate is the mean of its readings.
        rmse: root of mean_i (estimate_i - true_i)^2.
        mean_error: abs(estimate - true benchmark mean), the estimate being the one a host prints: it weighs
            items equally, and readings as ``evalbudget.repeats.estimates.mean_over_fixed_items`` does.
        readings: per replay, rounded mean; less than the budget where a sampler stopped early.
        seconds: per replay, mean; not compared.
        mean_bias: as mean_error, with its sign.
        ratio: to ``uniform`` at the same budget, in worst_item_error, rmse or mean_error as the objective is
            worst-item, mse or mean. Computed per pool with common random numbers, then averaged. None if
            uniform takes no part.
        budget_asked: as written, for example ``20x``.
        pools: (model, rater) pairs averaged over.
        items: in all pools together.
        reason: why the sampler cannot run at this budget; then the other numbers are undefined. None if it
            did.
        usd: dollars paid per replay, mean; None where the budget is in readings.
    """

    sampler: Annotated[str, Shown("sampler")]
    budget: float
    seeds: int = 0
    objective: str
    worst_item_error: Annotated[Average, Shown("worst-item\nerror", "s")] = _UNKNOWN
    rmse: Annotated[Average, Shown("rmse", "#3")] = _UNKNOWN
    mean_error: Annotated[Average, Shown("mean\nerror", "#2")] = _UNKNOWN
    readings: Annotated[int, Shown("readings", by=_readings)] = 0
    seconds: Annotated[float, Shown("seconds", "#3")] = field(compare=False, default=math.nan)
    mean_bias: Average = _UNKNOWN
    ratio: Annotated[Average | None, Shown("ratio to\nuniform", "s")] = _UNKNOWN
    budget_asked: Annotated[str, Shown("budget", by=asked)]
    pools: int = 0
    items: int = 0
    reason: str | None = None
    usd: Annotated[float | None, Shown("paid", "$")] = None


@dataclass(frozen=True, slots=True)
class PoolInfo:
    """The items of one model and one rater: one run of a sampler.

    Attributes:
        model: name.
        rater: name.
        items: how many were replayed; a pool of 0 took no part.
        dropped: how many have some recorded repeats, but fewer than ``min_repeats``.
        unrecorded: how many have none.
    """

    model: str
    rater: str
    items: int
    dropped: int
    unrecorded: int


@dataclass(frozen=True, slots=True, repr=False)
class BacktestResult(Replayed):
    """Everything a backtest found.

    Attributes:
        rows: by budget, then by sampler, both as given.
        pools: what was replayed, and what was dropped.
        min_repeats: items with fewer recorded repeats were dropped.
        objective: what the samplers were told to minimise.
    """

    rows: tuple[Row, ...]
    pools: tuple[PoolInfo, ...]
    min_repeats: int
    objective: str

    def table(self) -> PrintableTable:
        """A rich table that fits 80 columns, with ratios to uniform; it also prints itself as text."""
        compared = any(row.ratio is not None for row in self.rows if row.reason is None)
        paid = any(row.usd is not None for row in self.rows)
        columns = ["sampler", "budget_asked", "worst_item_error", *(["ratio"] if compared else [])]
        columns += ["rmse", "mean_error", "readings", "usd" if paid else "seconds"]
        return table_of(self.rows, self._caption(compared), only=columns, parted="budget_asked")

    def _caption(self, compared: bool) -> str:
        used = [pool for pool in self.pools if pool.items]
        n_items = sum(pool.items for pool in used)
        what = "1 pool" if len(used) == 1 else f"{len(used)} pools"
        seeds = max(row.seeds for row in self.rows)
        parts = [f"{what} (model and rater), {n_items:,} items, {seeds} seeds."]
        dropped = sum(pool.dropped for pool in self.pools)
        unrecorded = sum(pool.unrecorded for pool in self.pools)
        if dropped or unrecorded:
            parts.append(
                f"Dropped: {dropped:,} items with fewer than {self.min_repeats} recorded repeats, "
                f"{unrecorded:,} with none."
            )
        if compared:
            metric = RATIO_OF[self.objective].replace("worst_item", "worst-item").replace("_", " ")
            parts.append(f"Ratio: {metric}, per pool, then averaged.")
        if any(row.usd is not None for row in self.rows):
            parts.append("± is one standard error over seeds; readings and what was paid are per replay.")
        else:
            parts.append("± is one standard error over seeds; readings and seconds are per replay.")
        cannot = dict.fromkeys(f"\n-: {row.reason}." for row in self.rows if row.reason is not None)
        return " ".join(parts) + "".join(cannot)


RATIO_OF = {"worst-item": "worst_item_error", "mse": "rmse", "mean": "mean_error"}
"""Which error the ratio compares, by objective."""
