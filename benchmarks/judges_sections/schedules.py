"""What schedules alone do: periodic datasets, and how long assigning takes."""

from __future__ import annotations

import time

import numpy as np

from evalbudget.rotation import Cyclic, Priced, Random
from judges_sections.found import Found, Target, biases, names


def period(quick: bool) -> Found:
    K, per, R = 5, 40, 50 if quick else 1000
    kinds = [f"category {c}" for c in range(4)]
    n = per * len(kinds)
    category = [kinds[(i // K) % len(kinds)] for i in range(n)]
    hard = np.arange(n) % K - (K - 1) / 2  # every K-th item is of one kind
    gamma = biases(K, 1.0)
    code = np.array([kinds.index(c) for c in category])
    plain = np.arange(n) % K
    worst: list[list[float]] = []
    worst_plain: list[list[float]] = []
    error = []
    rng = np.random.default_rng(4)
    for seed in range(R):
        noise = rng.normal(0, 1, n)
        judge = Cyclic([str(i) for i in range(n)], names(K), categories=category, seed=seed).assign().judge
        for assigned, out in ((judge, worst), (plain, worst_plain)):
            # interaction of kind and judge: what a periodic order turns into bias
            x = hard + gamma[assigned] * (1 + 0.5 * hard) + noise
            found = [x[code == c].mean() - hard[code == c].mean() for c in range(len(kinds))]
            out.append(found)
        x = hard + gamma[judge] * (1 + 0.5 * hard) + noise
        error.append([x[code == c].std(ddof=1) / np.sqrt(per) for c in range(len(kinds))])
    rows = []
    for label, out in (("cyclic", worst), ("item mod K", worst_plain)):
        mean = np.mean(out, axis=0)
        rows.append((label, *(f"{b:+.3f}" for b in mean), f"{np.mean(error):.3f}"))
    ours = float(np.abs(np.mean(worst, axis=0)).max())
    return Found(
        "Items of kind i mod K in an order of period K = 5; judges differ more on hard items; four "
        "categories of 40.",
        ("assignment", *(f"bias, {kind}" for kind in kinds), "standard error"),
        tuple(rows),
        (
            Target(
                "no category biased by more than its standard error",
                f"largest {ours:.3f}, standard error {np.mean(error):.3f}",
                ours < float(np.mean(error)),
            ),
        ),
    )


def speed(quick: bool) -> Found:
    n = 5_000 if quick else 100_000
    items, rows, slowest = [str(i) for i in range(n)], [], 0.0
    categories = [str(i % 50) for i in range(n)]
    for K in (2, 5, 20, 123):
        for name, build in (
            ("cyclic", lambda k: Cyclic(items, names(k), categories=categories)),
            (
                "priced",
                lambda k: Priced(items, names(k), categories=categories, prices=range(1, k + 1)),
            ),
            ("random", lambda k: Random(items, names(k), categories=categories)),
            (
                "cyclic, one judge dropped",
                lambda k: Cyclic(items, names(k), categories=categories).without(0),
            ),
        ):
            start = time.perf_counter()
            schedule = build(K)
            counts = np.bincount(schedule.assign().judge, minlength=K)[list(schedule.active)]
            seconds = time.perf_counter() - start
            slowest = max(slowest, seconds)
            rows.append((name, str(K), f"{seconds:.3f}", f"{counts.min()} to {counts.max()}"))
    return Found(
        f"{n:,} items assigned, construction included.",
        ("rotation", "judges", "seconds", "calls per judge"),
        tuple(rows),
        (Target("100k items in under a second", f"slowest {slowest:.2f} s", slowest < 1.0),),
    )
