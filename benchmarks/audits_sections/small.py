"""Pools that are too small to tell systems apart by items like these: the second pass, and one system."""

from __future__ import annotations

import numpy as np
from scipy.stats import binomtest

from audits_sections.play import PRICES, audit, single
from audits_sections.worlds import QUALITIES, SMALL_NULLS, World, leaderboard
from judges_sections.found import Found, Target

SYSTEMS, ITEMS = 24, 100
TRIALS = 100
NULL_TRIALS = 300


def small(quick: bool, seeds: int | None = None) -> Found:
    """24 systems and 100 items: decided, right, and at what price."""
    trials = 2 if quick else (seeds or TRIALS)
    systems, items = (6, 30) if quick else (SYSTEMS, ITEMS)
    everything = PRICES[1] * systems * items
    rows, right, price = [], {}, {}
    for kind in ("rating", "pass/fail"):
        for quality in (*reversed(QUALITIES), "none"):
            found, most = [], 0.0
            ok = 0
            for seed in range(trials):
                rng = np.random.default_rng((seed, 11))
                world = leaderboard(items, systems, kind, "weak" if quality == "none" else quality, rng)
                played = audit(world, seed=seed, use_judge=quality != "none")
                means = world.human.mean(axis=0)
                ok += played.decided and bool(means[played.named] >= means.max() - 1e-9)
                most = max(most, played.cost)
                found.append(played)
            right[kind, quality] = ok / trials
            price[kind, quality] = float(np.mean([p.cost for p in found])) / everything
            rows.append(
                (
                    kind,
                    quality,
                    f"{np.mean([p.decided for p in found]):.3f}",
                    f"{ok / trials:.3f}",
                    f"{np.mean([p.of_pool for p in found]):.2f}",
                    f"{np.mean([p.pulls for p in found]):,.0f}",
                    f"{np.mean([p.audits for p in found]):,.0f}",
                    f"{np.mean([p.cost for p in found]):,.0f}",
                    f"{price[kind, quality]:.3f}",
                    f"{most / everything:.3f}",
                )
            )
    weak = [key for key in right if key[1] == "weak"]
    good = [key for key in right if key[1] == "good"]
    least, dearest = min(right[key] for key in weak), max(price[key] for key in weak)
    return Found(
        f"{systems} systems x {items} items, the second best at least .02 behind; labelling everything costs "
        f"{everything:,.0f}. delta = .05, prices 1 and 20, batches of the default size; {trials} trials. "
        "right: the winner is the best of this pool. Without a judge (none) labels come in batches for all "
        "systems that can still win.",
        (
            "labels",
            "judge",
            "decided",
            "decided and right",
            "second pass",
            "pulls",
            "audits",
            "cost",
            "of labelling everything",
            "dearest run",
        ),
        tuple(rows),
        (
            Target("weak judge: decided and right in at least .95", f"at least {least:.3f}", least >= 0.95),
            Target(
                "weak judge: at most 1.05 of labelling everything", f"at most {dearest:.3f}", dearest <= 1.05
            ),
            Target(
                "good judge: at most .7 of labelling everything",
                f"at most {max(price[key] for key in good):.3f}",
                max(price[key] for key in good) <= 0.7,
            ),
        ),
    )


def small_nulls(quick: bool, seeds: int | None = None) -> Found:
    """How often a winner that is none is declared on pools whose means are exactly equal, or nearly."""
    trials = 2 if quick else (seeds or NULL_TRIALS)
    items = 40 if quick else 100
    rows, worst = [], 0.0
    for name, make in SMALL_NULLS.items():
        for systems in (2, 6):
            wrong = won = labels = 0
            for seed in range(trials):
                world = make(items, systems, np.random.default_rng((seed, 12)))
                found = audit(world, seed=seed)
                means = world.human.mean(axis=0)
                others = np.delete(means, found.named)
                wrong += found.decided and bool(others.max() > means[found.named] - 1e-9)
                won += found.decided
                labels += found.audits
            worst = max(worst, wrong / trials)
            rows.append(
                (
                    name,
                    str(systems),
                    f"{won / trials:.3f}",
                    f"{wrong / trials:.3f}",
                    f"{labels / trials:,.0f} of {systems * items}",
                )
            )
    return Found(
        f"Pools of {items} items, {trials} trials; delta = .05. All means are exactly equal, except "
        "where one item decides: the last one is the best there, by .25/N. Audits that name no winner end "
        "with a tie, which is exact.",
        ("pool", "systems", "winner declared", "wrong winner", "labels"),
        tuple(rows),
        (Target("a wrong winner in at most .05", f"at most {worst:.3f}", worst <= 0.05),),
    )


def one_system(quick: bool, seeds: int | None = None) -> Found:
    """The mean of one system in a small pool: decided no later than labelling all."""
    trials = 2 if quick else (seeds or NULL_TRIALS)
    rows, decided, dearest, worst = [], 1.0, 0.0, 1.0
    sizes = ((100, 0.05), (300, 0.07), (1000, 0.05), (3000, 0.06))
    for items, half_width in sizes[: 2 if quick else None]:
        for agrees in (0.6, 0.9):
            found, covered = [], 0
            for seed in range(trials):
                rng = np.random.default_rng((seed, 13))
                y = (rng.random((items, 1)) < 0.85).astype(np.float64)
                judge = np.where(rng.random(y.shape) < agrees, y, 1.0 - y)
                world = World(judge, y, np.zeros(items, dtype=np.int64))
                played, low, high = single(world, seed=seed, half_width=half_width)
                truth = float(y.mean()) if played.of_pool else 0.85
                covered += low - 1e-9 <= truth <= high + 1e-9
                found.append(played)
            cost = float(np.mean([p.cost for p in found])) / (PRICES[1] * items)
            share = float(np.mean([p.decided for p in found]))
            decided, dearest = min(decided, share), max(dearest, cost)
            worst = min(worst, float(binomtest(covered, trials, 0.95, alternative="less").pvalue))
            rows.append(
                (
                    f"{items:,}",
                    f"{half_width:g}",
                    f"{agrees:g}",
                    f"{share:.3f}",
                    f"{covered / trials:.3f}",
                    f"{np.mean([p.of_pool for p in found]):.2f}",
                    f"{np.mean([p.audits for p in found]):,.0f}",
                    f"{cost:.3f}",
                )
            )
    return Found(
        f"One system that passes 85% of items; delta = .05, prices 1 and 20; {trials} trials. holds: the "
        "interval has the mean of items like these, or after a second pass of this pool.",
        (
            "items",
            "half-width",
            "judge agrees",
            "decided",
            "holds",
            "second pass",
            "labels",
            "cost of labelling everything",
        ),
        tuple(rows),
        (
            Target("decided always", f"at least {decided:.3f}", decided == 1.0),
            Target("at most 1.05 of labelling everything", f"at most {dearest:.3f}", dearest <= 1.05),
            Target("holds in at least .95, within binomial error", f"least p {worst:.2g}", worst > 0.001),
        ),
    )
