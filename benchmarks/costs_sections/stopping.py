"""When a reading may begin whose cost is not known: what is overspent, what is left, and what it biases."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from costs_sections.money import Rule, Seen, largest_seen
from costs_sections.validity import IN_FLIGHT, bought, estimated, z
from evalbudget.design import Cell
from judges_sections.found import Found, Target
from repeats_sections.distributions import bernoulli

ITEMS = 40
TIMES = 10
SEEDS = 400


def _largest_of_item(seen: Seen, cell: Cell) -> float:
    return seen.of_item.get(cell.item, seen.largest)


def _quantile(seen: Seen, cell: Cell) -> float:
    return float(np.quantile(seen.costs[-500:], 0.95))


def _mean(seen: Seen, cell: Cell) -> float:
    return seen.total / len(seen.costs)


RULES: Mapping[str, Rule | None] = {
    "the largest cost so far": largest_seen,
    "the largest so far of the item": _largest_of_item,
    "the 95% quantile so far": _quantile,
    "the mean so far": _mean,
    "nothing; cut off when the money is used up": None,
}


def stopping(quick: bool, seeds: int | None = None) -> Found:
    """Rules for beginning a reading, on costs over two decades that tell of the score."""
    n_items, runs = (8, 2) if quick else (ITEMS, seeds or SEEDS)
    pool = bernoulli(n_items, 2.0, 0.7)
    rows = []
    biased: dict[str, float] = {}
    covered: dict[str, float] = {}
    over: dict[str, float] = {}
    for name, rule in RULES.items():
        for way in ("plain epochs", "by costs"):
            found, left, cut = [], [], []
            for seed in range(runs):
                sampler, run, budget = bought(pool, way, TIMES, seed, rule)
                found.append(estimated(pool, sampler, run, items=False))
                left.append(1.0 - run.spent / budget)
                cut.append(run.cut)
            errors, share = np.array([one.error for one in found]), np.array(left)
            excess = np.maximum(-share, 0.0)
            if way == "by costs":
                biased[name] = z(errors)
                covered[name] = 1.0 - float(np.mean([one.missed for one in found]))
                over[name] = float(np.quantile(excess, 0.95))
            rows.append(
                (
                    name,
                    way,
                    f"{100.0 * np.maximum(share, 0.0).mean():.1f}%",
                    f"{(excess > 0.0).mean():.2f}",
                    f"{100.0 * excess.mean():.2f}% / {100.0 * np.quantile(excess, 0.95):.2f}% / "
                    f"{100.0 * excess.max():.2f}%",
                    f"{np.mean(cut):.1f}",
                    f"{errors.mean() / errors.std(ddof=1):+.2f} ({z(errors):+.1f})",
                    f"{1.0 - np.mean([one.missed for one in found]):.3f}",
                )
            )
    first = next(iter(RULES))
    return Found(
        f"{n_items} items, pass or fail, money of {TIMES} readings each, {IN_FLIGHT} in flight for as "
        f"long as they "
        f"cost; costs as in the section before. {runs} runs each. A reading begins when what it is "
        f"promised is "
        "free, those under way being promised by what is known now, and comes back; in the last rule it "
        "begins while there is money, and what is under way when it "
        "is used up is lost. Bias is that of the printed benchmark mean, in its standard deviations (in "
        "brackets in standard errors of the simulation).",
        (
            "promised for a reading",
            "",
            "left over",
            "overspent",
            "by (mean / 95% / most)",
            "cut off",
            "bias",
            "coverage",
        ),
        tuple(rows),
        (
            Target(
                f"with {first}, the printed mean by costs is unbiased",
                f"{biased[first]:+.1f} standard errors, coverage {covered[first]:.3f}",
                abs(biased[first]) < 4.0,
            ),
            Target(
                f"with {first}, 95% of runs overspend by no more than 1%",
                f"{100.0 * over[first]:.2f}%",
                over[first] <= 0.01,
            ),
        ),
    )
