"""Section ``gains``: what the default gains over plain epochs, by kind of score and number of items."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget.backtest import Average
from evalbudget.repeats.backtest._pool import Draws, Pool
from evalbudget.repeats.samplers import Auto
from evalbudget.replay._workers import Job, run_all
from repeats_sections.bias import FILE, Case, pass_or_fail, rated
from repeats_sections.readings import run_sampler
from repeats_sections.replays import numbers_of
from repeats_sections.section import Section, Setting, Table, shown

Floats = NDArray[np.float64]

PER_ITEM = (10, 20)
SEEDS = {15: 300, 100: 100, 1000: 30, 3500: 10}
"""Replications by number of items."""
LONGEST = 4
"""Plain epochs are followed to so many times the budget."""
LEAST = 0.02
"""Of an error: less is nothing."""
NOISE = 2
"""Standard errors: less is nothing."""


@dataclass(frozen=True, slots=True)
class _Stage:
    """The default and plain epochs on one kind of scores, for the workers."""

    case: Case
    n_items: int

    def run(self, job: Job) -> Floats:
        """By budget: worst error, variance of the mean over plain epochs', plain worst errors by epoch."""
        pool = self.case.draw(self.n_items, job.seed)
        plain = _plain_errors(pool, job.seed)
        found = []
        for per_item in job.budgets:
            budget = per_item * self.n_items
            sampler = Auto(pool.design, seed=job.seed, budget=budget)
            played = run_sampler(pool, sampler, budget, job.seed)
            worst, variance, *_ = numbers_of(pool, sampler, played, budget)
            found.append([worst, variance, *plain])
        return np.array(found)


def run(setting: Setting) -> Section:
    kinds = {
        "ratings by LLM judges": rated(),
        "pass or fail, mostly pass": [pass_or_fail(9.0, 1.0)],
        "pass or fail, mostly one or the other": [pass_or_fail(0.3, 0.3)],
    }
    sizes: Mapping[int, int] = dict.fromkeys((8, 20), 2) if setting.quick else SEEDS
    rows, total = [], len(sizes) * sum(map(len, kinds.values()))
    done = 0
    for kind, cases in kinds.items():
        for n_items, own in sizes.items():
            jobs = [Job(0, 0, seed, PER_ITEM) for seed in range(setting.replications(own))]
            found = []
            for case in cases:
                found.append(run_all(_Stage(case, n_items), jobs, workers=setting.workers))
                done += 1
                setting.progress("gains", done, total)
            cells = _cells(np.array(found), aims_at_worst=cases[0].name.startswith("ratings"))
            rows.append((kind, f"{n_items:,}", *cells))
    table = Table(
        "Errors of the default over those of plain epochs with as many calls",
        (
            "scores",
            "items",
            *(f"{what}, {n}x" for what in ("worst item", "benchmark mean", "calls saved") for n in PER_ITEM),
        ),
        tuple(rows),
        f"-: apart by less than {LEAST:.0%} or than {NOISE} standard errors. Calls saved: of the calls that "
        "plain epochs need for as small an error, of the worst item on ratings and of the benchmark mean on "
        "pass or fail: what the default aims at. Replications: "
        f"{', '.join(f'{n} of {size:,} items' for size, n in sizes.items())}; of ratings, for each judge.",
    )
    return Section(
        "gains",
        "What the default gains",
        f"auto, the default, on ratings (random items of {FILE}, judge by judge) and on pass or fail "
        "(chances to pass from Beta(9, 1) and Beta(.3, .3)). Where nothing is gained, something else saves "
        "calls: a race to find the best model, a gate to see whether one got worse, --until to end once the "
        "items are known well enough, fewer items (--sampler sample) where only the benchmark mean matters.",
        (table,),
    )


def _plain_errors(pool: Pool, seed: int) -> Floats:
    """Error of the worst item after 1, 2, ... plain epochs, on the draws that the sampler gets."""
    most = LONGEST * max(PER_ITEM)
    sums = np.cumsum(Draws(pool, seed).of(*np.indices((len(pool.items), most))), axis=1)
    return np.asarray(np.abs(sums / np.arange(1, most + 1) - pool.means[:, None]).max(axis=0))


def _cells(found: Floats, *, aims_at_worst: bool) -> list[str]:
    """Of one row; ``found`` has the shape (cases, seeds, budgets, numbers of a run)."""
    worst, mean, saved = [], [], []
    for place, per_item in enumerate(PER_ITEM):
        error, variance, *plain = np.moveaxis(found[:, :, place], 2, 0)
        worst.append(_shown(Average.ratio(error, plain[per_item - 1])))
        root = np.sqrt(variance.mean(axis=1, keepdims=True))
        mean.append(_shown(Average.of(root + (variance - root**2) / (2.0 * root))))
        if aims_at_worst:
            curve = np.mean(plain, axis=(1, 2))
            needed = float(np.interp(-error.mean(), -np.minimum.accumulate(curve), 1 + np.arange(curve.size)))
        else:
            needed = per_item / float(variance.mean())
        aim = worst[-1] if aims_at_worst else mean[-1]
        saved.append("-" if aim == "-" else f"{1.0 - per_item / needed:.0%}")
    return [*worst, *mean, *saved]


def _shown(ratio: Average) -> str:
    apart = abs(1.0 - ratio.mean)
    return shown(ratio, 2) if apart >= LEAST and apart > NOISE * ratio.stderr else "-"
