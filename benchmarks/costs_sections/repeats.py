"""Repeats: the worst item's error for equal money."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from costs_sections.money import Floats, one_at_a_time
from costs_sections.prices import PRICES
from evalbudget.backtest import Average
from evalbudget.design import Reading
from evalbudget.repeats.backtest._pool import Pool
from evalbudget.repeats.samplers import Auto, RepeatSampler, Uniform
from judges_sections.found import Found, Target
from repeats_sections.distributions import bernoulli, ratings

ITEMS = 100
TIMES = (10, 20, 50)
SEEDS = 60
WANTED = 1.5
WAYS = ("plain epochs", "by counts", "by costs")


def repeats(quick: bool, seeds: int | None = None) -> Found:
    """Plain epochs, the default by counts and by costs, on made-up scores and costs."""
    n_items, runs = (4, 2) if quick else (ITEMS, seeds or SEEDS)
    rows: list[tuple[str, ...]] = []
    plain: list[Average] = []
    counts: list[Average] = []
    identical = True
    for pool in (ratings(n_items), bernoulli(n_items, 2.0, 0.7)):
        for name in PRICES:
            worst = _worst(pool, name, runs)
            for b, times in enumerate(TIMES):
                of = {way: errors[:, b][None] for way, errors in worst.items()}
                against = [Average.ratio(of[way], of["by costs"]) for way in WAYS[:2]]
                if name == "all equal":
                    identical &= bool((of["by counts"] == of["by costs"]).all())
                elif name != "only noise from reading to reading":
                    plain.append(against[0])
                    counts.append(against[1])
                rows.append(
                    (
                        pool.model,
                        name,
                        f"{times}x",
                        *(f"{of[way].mean():.3f}" for way in WAYS),
                        *(f"{ratio.mean:.2f} ± {ratio.stderr:.2f}" for ratio in against),
                    )
                )
    return Found(
        f"{n_items} items whose true means and variances are known, {runs} replications. A budget of 10x "
        f"is the "
        "money that ten readings of every item are expected to cost; a reading begins while the largest cost "
        "so far fits. Costs over two decades are log-normal, with a factor of 100 between their 2.5% and "
        "97.5% "
        "quantiles. By counts is the default that does not look at costs and is stopped by the money; by "
        "costs the same after weigh_costs(); neither is told how much money there is, and on pass or fail "
        "both aim at the benchmark mean. Error of the worst item: the mean of the largest |error|, of an "
        "item's "
        "plain mean. Ratios, with their standard errors, are of that error to the one by costs: above 1, by "
        "costs is better.",
        ("scores", "costs", "money", *WAYS, "plain / by costs", "by counts / by costs"),
        tuple(rows),
        (
            _reached("plain epochs", plain),
            _reached("the default by counts", counts),
            Target(
                "never worse when costs are equal: the same readings",
                "every error the same" if identical else "errors differ",
                identical,
            ),
            Target(
                "no row worse than by counts, two standard errors aside",
                f"least {min(r.mean for r in counts):.2f}",
                all(ratio.mean + 2.0 * ratio.stderr >= 1.0 for ratio in counts),
            ),
        ),
    )


def _worst(pool: Pool, name: str, runs: int) -> Mapping[str, Floats]:
    """Worst-item error of each way, shape (runs, budgets)."""
    found: dict[str, list[list[float]]] = {way: [] for way in WAYS}
    for seed in range(runs):
        prices = PRICES[name](pool, seed)
        for way in WAYS:
            sampler: RepeatSampler = (Uniform if way == "plain epochs" else Auto)(pool.design, seed=seed)
            if way == "by costs":
                sampler.weigh_costs()
            priced, typical = prices.priced(pool, seed)
            budgets = [times * typical * len(pool.items) for times in TIMES]
            found[way].append([_error(pool, run.readings) for run in one_at_a_time(sampler, priced, budgets)])
    return {way: np.array(errors) for way, errors in found.items()}


def _error(pool: Pool, readings: tuple[Reading, ...]) -> float:
    item = [reading.request.cell.item for reading in readings]
    total = np.bincount(item, weights=[r.value or 0.0 for r in readings], minlength=len(pool.items))
    with np.errstate(invalid="ignore"):
        errors = np.abs(total / np.bincount(item, minlength=len(pool.items)) - pool.means)
    return float(np.nanmax(errors))


def _reached(than: str, ratios: list[Average]) -> Target:
    least = min(ratios, key=lambda ratio: ratio.mean)
    most = max(ratios, key=lambda ratio: ratio.mean)
    return Target(
        f"worst-item error for equal money {WANTED:g} times less than with {than}, in every row",
        f"{least.mean:.2f} to {most.mean:.2f}",
        least.mean >= WANTED,
    )
