"""Replays pools under the library's own samplers and keeps every seed's worst-item error."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evalbudget.backtest.contestant import Contestant, contestants
from evalbudget.backtest.engine import ReplayStage
from evalbudget.backtest.pool import Draws, Pool
from evalbudget.backtest.workers import Job, run_all
from evalbudget.budget import Budget
from evalbudget.design import Reading
from evalbudget.plugins import plugins
from evalbudget.sampler import Allocation
from repeats_sections.section import Setting

REFERENCES = ("uniform", "robin", "robin-hood")
RECOMMENDED = ("eb-bernstein", "rating-kernel")

Errors = Mapping[tuple[str, str], NDArray[np.float64]]
"""(sampler, budget as written) -> worst-item errors, shape (n_pools, n_seeds)."""


def recommended(setting: Setting) -> tuple[str, ...]:
    """The recommended samplers that are registered and not left out."""
    registered = plugins().samplers
    return tuple(name for name in RECOMMENDED if name in registered and name not in setting.without)


def compared(errors: Errors) -> tuple[str, ...]:
    """The samplers that took part, the references first."""
    return tuple(dict.fromkeys(name for name, _ in errors))


def worst_item_errors(
    pools: Sequence[Pool], budgets: Sequence[str], seeds: int, setting: Setting, what: str
) -> Errors:
    """Replay every sampler on every pool; budgets below a sampler's warm-up are left out."""
    entrants = contestants(REFERENCES + recommended(setting), {})
    found: dict[tuple[str, str], NDArray[np.float64]] = {}
    total = len(entrants) * len(pools) * seeds
    for c, entrant in enumerate(entrants):
        for p, pool in enumerate(pools):
            amounts = _affordable(entrant, pool, budgets)
            done = (c * len(pools) + p) * seeds
            kept = _kept(setting.replays, what, entrant.name, pool, tuple(amounts), seeds)
            if kept is not None and kept.is_file():
                errors = np.load(kept)
            else:
                errors = _replay(
                    pool,
                    entrant,
                    tuple(amounts.values()),
                    seeds,
                    setting.workers,
                    partial(_report, setting, what, done, total),
                )
                if kept is not None:
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    np.save(kept, errors)
            setting.progress(what, done + seeds, total)
            for b, budget in enumerate(amounts):
                found.setdefault((entrant.name, budget), np.empty((len(pools), seeds)))[p] = errors[:, b]
    return found


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
    """Worst-item errors of one sampler on one pool, shape (n_seeds, n_budgets)."""
    if not amounts:
        return np.empty((seeds, 0))
    if entrant.build(pool, objective="worst-item", seed=0, budget=amounts[-1]).allocation is Allocation.FIXED:
        return fixed_errors(pool, entrant, amounts, seeds)
    stage = ReplayStage((pool,), (entrant,), "worst-item", 1)
    jobs = [Job(0, 0, seed, amounts) for seed in range(seeds)]
    outcomes = run_all(stage, jobs, workers=workers, progress=progress)
    return np.array([[outcome.worst_item_error for outcome in result] for result in outcomes])


def fixed_errors(
    pool: Pool, entrant: Contestant, amounts: tuple[int, ...], seeds: int
) -> NDArray[np.float64]:
    """The same for a sampler whose counts do not depend on scores: one run says how often to draw each item.

    The seed of that run, which orders equals, is 0 for all draws.
    """
    sampler = entrant.build(pool, objective="worst-item", seed=0, budget=amounts[-1])
    asked: NDArray[np.int64] = np.zeros(len(pool.items), dtype=np.int64)
    counts = []
    for before, amount in pairwise((0, *amounts)):
        for _ in range(amount - before):
            (request,) = sampler.ask()
            asked[request.cell.item] += 1
            sampler.tell((Reading(request, 0.0),))
        counts.append(asked.tolist())
    errors = np.empty((seeds, len(amounts)))
    for seed in range(seeds):
        draws = Draws(pool, seed, amounts[-1])
        for item, n in enumerate(counts[-1]):
            draws.further(item, n - 1)
        for b, per_item in enumerate(counts):
            flat = np.concatenate([row[:n] for row, n in zip(draws.values, per_item, strict=True)])
            n = np.array(per_item)
            means = np.add.reduceat(flat, np.cumsum(n) - n) / n
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
