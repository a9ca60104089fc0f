"""Section ``bias``: what is printed of the benchmark mean, wherever a run ends, beside plain epochs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from evalbudget import Allocation
from evalbudget.backtest import RecordedScores
from evalbudget.design import Design
from evalbudget.estimate import Estimate
from evalbudget.repeats.backtest._pool import Pool, pools_of
from evalbudget.repeats.estimates import mean_over_fixed_items, mean_over_sampled_items
from evalbudget.repeats.samplers import Auto
from places import data_file
from repeats_sections.distributions import drawn_bernoulli
from repeats_sections.readings import Run, run_sampler
from repeats_sections.section import Section, Setting, Table, Target

PER_ITEM = (10, 20, 50)
STOPS = (0.2, 0.35, 0.6, 0.8, 1.0)
FAILURES = 0.3
LEVEL = 0.95
MOST = 1.03
"""Of the error of plain epochs with as many calls."""
SIGNIFICANCE = 0.001
"""Of all cells of the table together."""


@dataclass(frozen=True, slots=True)
class Case:
    """Where items come from, and how many of their readings fail.

    Attributes:
        name: for the table.
        draw: a pool of so many items, by its seed.
        population: mean of the population that items are from.
        failures: share of the readings that fail at random.
    """

    name: str
    draw: Callable[[int, int], Pool]
    population: float
    failures: float = 0.0


@dataclass(frozen=True, slots=True)
class _Cell:
    """One kind of run at one stop, over replications; each array has one entry a replication."""

    case: Case
    per_item: int
    stop: float
    errors: NDArray[np.float64]
    variances: NDArray[np.float64]
    plain: NDArray[np.float64]
    claimed: NDArray[np.float64]
    missed: NDArray[np.bool_]
    missed_items: NDArray[np.bool_]

    @property
    def bias(self) -> float:
        """In standard deviations of the estimate."""
        return float(self.errors.mean() / self.errors.std(ddof=1))

    @property
    def ratio(self) -> float:
        """Error over that of plain epochs with as many readings, by the true variances of the readings."""
        return float(np.sqrt(self.variances.mean() / self.plain.mean()))

    @property
    def told(self) -> float:
        """Reported standard error over the true one."""
        return float(np.sqrt(np.mean(self.claimed**2) / self.variances.mean()))


def run(setting: Setting) -> Section:
    n_items = 20 if setting.quick else 100
    seeds = setting.replications(300)
    cases = _cases(setting.quick)
    cells = []
    for place, case in enumerate(cases):
        for per_item in PER_ITEM[: 1 if setting.quick else None]:
            cells += _replayed(case, n_items, per_item, seeds)
        setting.progress("bias", place + 1, len(cases))
    rows = [row for case in cases for row in _rows([cell for cell in cells if cell.case is case])]
    table = Table(
        f"Error of the benchmark mean over that of plain epochs with as many readings, {n_items} items",
        ("items", "budget", *(f"{stop:.0%}" for stop in STOPS), "bias in SDs", "coverage", "items random"),
        tuple(rows),
        f"{seeds} replications with {seeds} draws of items. Columns of shares: runs broken off there. The "
        "error is that of the shares which readings had, with their true variances, so that its own noise is "
        "below .003. Bias is the largest mean error over the standard deviation of the estimate, coverage "
        "the lowest and the highest of the five stops, of these items asked again and of items like these.",
    )
    return Section(
        "bias",
        "The benchmark mean, wherever a run ends",
        "auto, the default, on pass or fail (chances of items from the named distribution) and on the "
        f"ratings of {FILE}.",
        (table,),
        tuple(_targets(cells)),
    )


FILE = "judge_repeats.npz"


def pass_or_fail(a: float, b: float) -> Case:
    """Items whose chances are drawn from Beta(a, b)."""
    return Case(f"pass or fail, Beta({a:g}, {b:g})", partial(drawn_bernoulli, a, b), a / (a + b))


def rated() -> list[Case]:
    """Random samples of the items that each recorded judge rated."""
    pools = pools_of((RecordedScores.load(data_file(FILE)),), model=None, rater=None, min_repeats=6)
    return [Case(f"ratings by {pool.rater}", _sample_of(pool), float(pool.means.mean())) for pool in pools]


def _cases(quick: bool) -> list[Case]:
    found = [pass_or_fail(a, b) for a, b in ((9.0, 1.0), (2.0, 0.2), (0.3, 0.3))]
    failing = replace(found[2], name=f"{found[2].name}, {FAILURES:.0%} fail", failures=FAILURES)
    return [*found, *(() if quick else rated()), failing]


def _sample_of(pool: Pool) -> Callable[[int, int], Pool]:
    def draw(n_items: int, seed: int) -> Pool:
        kept = np.sort(np.random.default_rng([seed, 9]).permutation(len(pool.items))[:n_items])
        return replace(
            pool,
            items=tuple(pool.items[i] for i in kept.tolist()),
            values=pool.values[kept],
            counts=pool.counts[kept],
            means=pool.means[kept],
            variances=pool.variances[kept],
            keys=pool.keys[kept],
        )

    return draw


def _replayed(case: Case, n_items: int, per_item: int, seeds: int) -> list[_Cell]:
    """Runs of one kind, looked at wherever they could have ended."""
    found: list[list[tuple[float, ...]]] = [[] for _ in STOPS]
    for seed in range(seeds):
        pool = case.draw(n_items, seed)
        budget = per_item * n_items
        sampler = Auto(Design.of_items(n_items), seed=seed, budget=budget)
        played = run_sampler(pool, sampler, budget, seed, case.failures)
        for place, stop in enumerate(STOPS):
            found[place].append(_numbers(case, pool, played, round(stop * played.item.size)))
    return [
        _Cell(case, per_item, stop, *(np.array(column) for column in zip(*numbers, strict=True)))
        for stop, numbers in zip(STOPS, found, strict=True)
    ]


def _numbers(case: Case, pool: Pool, played: Run, n: int) -> tuple[float, ...]:
    """What :class:`_Cell` has of one run after so many readings."""
    readings = played.until(n)
    read = readings.counts > 0
    K = int(read.sum())
    truth = float(pool.means[read].mean())
    bounds = (0.0, 1.0) if np.isin(readings.value, (0.0, 1.0)).all() else None  # as hosts know it
    fixed = mean_over_fixed_items(readings, allocation=Allocation.PHASED, bounds=bounds)
    sampled = mean_over_sampled_items(readings, allocation=Allocation.PHASED, bounds=bounds)
    squared = np.bincount(readings.item, readings.shares**2, readings.n_items)
    return (
        fixed.value - truth,
        float((pool.variances * squared)[read].sum()) / K**2,
        float(pool.variances[read].mean()) / K * _plain(n, K),
        fixed.standard_error,
        _missed(fixed, truth),
        _missed(sampled, case.population),
    )


def _plain(n: int, K: int) -> float:
    """Mean of 1 / readings where n readings are spread over K items evenly."""
    each, more = divmod(n, K)
    return (more / (each + 1) + (K - more) / each) / K


def _missed(estimate: Estimate, truth: float) -> bool:
    interval = estimate.confidence_interval(LEVEL)
    return not interval.low <= truth <= interval.high


def _rows(cells: Sequence[_Cell]) -> list[tuple[str, ...]]:
    rows = []
    for per_item in sorted({cell.per_item for cell in cells}):
        own = [cell for cell in cells if cell.per_item == per_item]
        covers, items = (
            [1.0 - float(m.mean()) for m in of]
            for of in zip(*((c.missed, c.missed_items) for c in own), strict=True)
        )
        rows.append(
            (
                own[0].case.name,
                f"{per_item}x",
                *(f"{cell.ratio:.3f}" for cell in own),
                f"{max((cell.bias for cell in own), key=abs):+.2f} ±{1 / np.sqrt(own[0].errors.size):.2f}",
                f"{min(covers):.3f}-{max(covers):.3f}",
                f"{min(items):.3f}-{max(items):.3f}",
            )
        )
    return rows


def _targets(cells: Sequence[_Cell]) -> list[Target]:
    alpha = SIGNIFICANCE / len(cells)
    n = cells[0].errors.size
    dearest = max(cells, key=lambda cell: cell.ratio)
    largest = max(cells, key=lambda cell: abs(cell.bias))
    full = [cell for cell in cells if cell.per_item * cell.stop * (1.0 - cell.case.failures) >= 2.0]
    covers = [1.0 - float(cell.missed.mean()) for cell in full]
    items = [1.0 - float(cell.missed_items.mean()) for cell in full]
    told = max(full, key=lambda cell: abs(np.log(cell.told)))
    return [
        Target(
            f"error over that of plain epochs <= {MOST}, wherever it ends",
            f"largest {dearest.ratio:.3f}, {dearest.case.name}, {dearest.per_item}x at {dearest.stop:.0%}",
            bool(round(dearest.ratio, 3) <= MOST),
        ),
        Target(
            "bias within .1 SD",
            f"largest {largest.bias:+.2f} ±{1 / np.sqrt(n):.2f}",
            bool(abs(largest.bias) <= 0.1),
            bool(abs(largest.bias) - 0.1 <= 4.5 / np.sqrt(n)),
        ),
        Target(
            "coverage of these items .93-.97, from two readings per item on",
            f"{min(covers):.3f} to {max(covers):.3f}",
            round(min(covers), 3) >= 0.93 and round(max(covers), 3) <= 0.97,
            all(_holds(cell.missed, 0.03, 0.07, alpha) for cell in full),
        ),
        Target(
            "coverage of items like these >= .92",
            f"{min(items):.3f} to {max(items):.3f}",
            bool(round(min(items), 3) >= 0.92),
            all(_holds(cell.missed_items, 0.0, 0.08, alpha) for cell in full),
        ),
        Target(
            "reported over true standard error within .95-1.05, from two readings per item on",
            f"farthest {told.told:.3f}, {told.case.name}",
            bool(0.95 <= told.told <= 1.05),
        ),
    ]


def _holds(missed: NDArray[np.bool_], least: float, most: float, alpha: float) -> bool:
    """Whether so many misses do not refute a rate between the two."""
    k, n = int(missed.sum()), missed.size
    if k > most * n:
        return float(binomtest(k, n, most, alternative="greater").pvalue) >= alpha
    return least == 0.0 or k >= least * n or float(binomtest(k, n, least, alternative="less").pvalue) >= alpha
