"""Replays pools under the library's own samplers and keeps every seed's worst-item error."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evalbudget.budget import Budget
from evalbudget.hooks._plugins import plugins
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.backtest._pool import Draws, Pool
from evalbudget.repeats.estimates import mean_over_fixed_items
from evalbudget.repeats.samplers import RepeatSampler
from evalbudget.replay._contestant import Contestant, contestants
from evalbudget.replay._workers import Job, run_all
from evalbudget.sampler import Allocation, Sampler
from repeats_sections.readings import Run, run_sampler
from repeats_sections.section import Setting

REFERENCES = ("uniform", "robin", "robin-hood")
RECOMMENDED = ("auto", "eb-bernstein")  # on rating scales auto is rating-kernel

Errors = Mapping[tuple[str, str], NDArray[np.float64]]
"""(sampler, budget as written) -> one number per replay, shape (n_pools, n_seeds)."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What replays showed; see :data:`Errors`.

    Attributes:
        worst: worst-item error.
        variance: of the printed estimate of the benchmark mean given the shares its readings had, over that
            of plain epochs at the same budget.
        covered: 1 where the repeats interval of the printed estimate holds the true mean.
        told: standard error that the estimate reports, over the true one given the shares its readings had.
    """

    worst: Errors
    variance: Errors
    covered: Errors
    told: Errors


def recommended(setting: Setting) -> tuple[str, ...]:
    """The recommended samplers that are registered and not left out."""
    registered = plugins().samplers
    return tuple(name for name in RECOMMENDED if name in registered and name not in setting.without)


def compared(errors: Errors) -> tuple[str, ...]:
    """The samplers that took part, the references first."""
    return tuple(dict.fromkeys(name for name, _ in errors))


def measured(
    pools: Sequence[Pool], budgets: Sequence[str], seeds: int, setting: Setting, what: str
) -> Measured:
    """Replay every sampler on every pool; budgets below a sampler's warm-up are left out."""
    references = tuple(name for name in REFERENCES if name not in setting.without)
    entrants = contestants(references + recommended(setting), {})
    found: tuple[dict[tuple[str, str], NDArray[np.float64]], ...] = ({}, {}, {}, {})
    total = len(entrants) * len(pools) * seeds
    for c, entrant in enumerate(entrants):
        for p, pool in enumerate(pools):
            amounts = _affordable(entrant, pool, budgets)
            done = (c * len(pools) + p) * seeds
            kept = _kept(setting.replays, what, entrant.name, pool, tuple(amounts), seeds)
            if kept is not None and kept.is_file():
                numbers = np.load(kept)
            else:
                numbers = _replay(
                    pool,
                    entrant,
                    tuple(amounts.values()),
                    seeds,
                    setting.workers,
                    partial(_report, setting, what, done, total),
                )
                if kept is not None:
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    np.save(kept, numbers)
            setting.progress(what, done + seeds, total)
            for b, budget in enumerate(amounts):
                for k, table in enumerate(found):
                    table.setdefault((entrant.name, budget), np.empty((len(pools), seeds)))[p] = numbers[
                        :, b, k
                    ]
    return Measured(*found)


def _report(setting: Setting, what: str, before: int, total: int, done: int, _: int) -> None:
    setting.progress(what, before + done, total)


def _replay(
    pool: Pool,
    entrant: Contestant,
    amounts: tuple[int, ...],
    seeds: int,
    workers: int | None,
    progress: Callable[[int, int], None],
) -> NDArray[np.float64]:
    """One sampler on one pool, shape (n_seeds, n_budgets, 4): the numbers of :class:`Measured`."""
    if not amounts:
        return np.empty((seeds, 0, 4))
    sampler = entrant.build(pool, objective="worst-item", seed=0, budget=amounts[-1])
    if sampler.allocation is Allocation.FIXED:
        numbers = np.full((seeds, len(amounts), 4), np.nan)
        numbers[:, :, 0] = fixed_errors(pool, entrant, amounts, seeds)
        if entrant.name == "uniform":
            numbers[:, :, 1] = 1.0
        return numbers
    stage = _Stage(pool, entrant)
    groups = [(amount,) for amount in amounts] if entrant.plans_with_budget else [amounts]
    jobs = [Job(0, 0, seed, group) for seed in range(seeds) for group in groups]
    outcomes = run_all(stage, jobs, workers=workers, progress=progress)
    return np.array([row for rows in outcomes for row in rows]).reshape(seeds, len(amounts), 4)


@dataclass(frozen=True, slots=True)
class _Stage:
    """One sampler on one pool, for the workers."""

    pool: Pool
    entrant: Contestant

    @property
    def contestants(self) -> tuple[Contestant, ...]:
        return (self.entrant,)

    def run(self, job: Job) -> list[tuple[float, ...]]:
        sampler = self.entrant.build(self.pool, objective="worst-item", seed=job.seed, budget=job.budgets[-1])
        assert isinstance(sampler, RepeatSampler)
        run = run_sampler(self.pool, sampler, job.budgets[-1], job.seed)
        return [numbers_of(self.pool, sampler, run, budget) for budget in job.budgets]


def numbers_of(pool: Pool, sampler: Sampler, run: Run, budget: int) -> tuple[float, ...]:
    """The numbers of :class:`Measured` after so many readings."""
    readings = run.until(budget)
    estimate = mean_over_fixed_items(
        readings, allocation=sampler.allocation, fixed_repeats=max(sampler.fixed_repeats, 1)
    )
    used = readings
    if sampler.allocation is Allocation.ADAPTIVE:
        used = readings.without_phases().first(sampler.fixed_repeats)
    squared = np.bincount(used.item, used.shares**2, used.n_items)
    plain = float(pool.variances.mean()) * len(pool.items) / budget
    true = float(np.sqrt((pool.variances * squared).sum())) / len(pool.items)
    interval = estimate.confidence_interval(0.95)
    return (
        float(np.abs(readings.moments.mean - pool.means).max()),
        float((pool.variances * squared).mean()) / plain if plain > 0.0 else float("nan"),
        float(interval.low <= float(pool.means.mean()) <= interval.high),
        estimate.standard_error / true if true > 0.0 else float("nan"),
    )


def fixed_errors(
    pool: Pool, entrant: Contestant, amounts: tuple[int, ...], seeds: int
) -> NDArray[np.float64]:
    """The same for a sampler whose counts do not depend on scores: one run says how often to draw each item.

    The seed of that run, which orders equals, is 0 for all draws.
    """
    sampler = entrant.build(pool, objective="worst-item", seed=0, budget=amounts[-1])
    book, counts = ArrayBook(sampler), []
    for amount in amounts:
        while book.n < amount and (asked := book.ask(amount - book.n)) is not None:
            book.tell(np.zeros(asked.item.size))
        counts.append(book.bought().counts)
    errors = np.empty((seeds, len(amounts)))
    for seed in range(seeds):
        draws = Draws(pool, seed)
        for b, n in enumerate(counts):
            first = np.cumsum(n) - n
            flat = draws.of(np.repeat(np.arange(n.size), n), np.arange(n.sum()) - np.repeat(first, n))
            means = np.add.reduceat(flat, first) / n
            errors[seed, b] = np.abs(means - pool.means).max()
    return errors


def _kept(
    folder: Path | None, what: str, sampler: str, pool: Pool, budgets: tuple[str, ...], seeds: int
) -> Path | None:
    """Where these replays are kept: anything but the sampler's code that changes them is in the name."""
    if folder is None:
        return None
    known = (pool.values.tobytes(), pool.keys.tobytes(), repr(budgets).encode())
    digest = hashlib.blake2b(b"".join(known), digest_size=6).hexdigest()
    return folder / f"{what}-{sampler}-{seeds}-{digest}.npy"


def _affordable(entrant: Contestant, pool: Pool, budgets: Sequence[str]) -> dict[str, int]:
    """Budgets as written -> readings, those that cover the warm-up only."""
    amounts = {text: int(Budget.parse(text, n_items=len(pool.items)).amount) for text in budgets}
    sampler = entrant.build(pool, objective="worst-item", seed=0, budget=max(amounts.values()))
    least: int = getattr(sampler, "minimum_readings", 1)
    return {text: amount for text, amount in amounts.items() if amount >= least}
