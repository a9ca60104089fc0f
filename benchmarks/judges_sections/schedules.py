"""What schedules alone do: periodic datasets, and how long assigning takes."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from evalbudget.judges.schedules import Cyclic, Priced, Random
from judges_sections.found import Found, Target, biases, names

IntArray = NDArray[np.int64]


def period(quick: bool) -> Found:
    K, per, R = 5, 40, 50 if quick else 1000
    kinds = [f"category {c}" for c in range(4)]
    n = per * len(kinds)
    category = [kinds[(i // K) % len(kinds)] for i in range(n)]
    hard = np.arange(n) % K - (K - 1) / 2  # every K-th item is of one kind
    gamma = biases(K, 1.0)
    code = np.array([kinds.index(c) for c in category])
    ways: dict[str, Callable[[int], IntArray]] = {
        "cyclic": lambda seed: Cyclic(items, names(K), categories=category, seed=seed).assign().judge,
        "random": lambda seed: Random(items, names(K), categories=category, seed=seed).assign().judge,
        "item mod K": lambda seed: np.arange(n) % K,
    }
    items = [str(i) for i in range(n)]
    rng = np.random.default_rng(4)
    bias = {label: np.zeros((R, len(kinds))) for label in ways}
    error = np.zeros((R, len(kinds)))
    for seed in range(R):
        for label, assigned in ways.items():
            judge = assigned(seed)
            # interaction of kind and judge: what a periodic order turns into bias
            x = hard + gamma[judge] * (1 + 0.5 * hard)
            bias[label][seed] = [(x - hard)[code == c].mean() for c in range(len(kinds))]
            if label == "cyclic":
                noisy = x + rng.normal(0, 1, n)
                error[seed] = [noisy[code == c].std(ddof=1) / np.sqrt(per) for c in range(len(kinds))]
    beyond = {label: float((np.abs(found) > error.mean()).mean()) for label, found in bias.items()}
    rows = [
        (
            label,
            f"{np.abs(found.mean(axis=0)).max():.3f}",
            f"{np.sqrt((found**2).mean()):.3f}",
            f"{beyond[label]:.2%}",
            f"{error.mean():.3f}",
        )
        for label, found in bias.items()
    ]
    return Found(
        "Items of kind i mod K in an order of period K = 5; judges differ more on hard items; four "
        f"categories of 40, {R} runs. What the judges assigned add to a category's mean, noise aside.",
        ("assignment", "largest mean bias", "bias of one run, rms", "runs beyond", "standard error"),
        tuple(rows),
        (
            Target(
                "no category biased by more than its standard error, in 99% of single runs",
                f"{beyond['cyclic']:.2%} of the runs are; random {beyond['random']:.2%}",
                beyond["cyclic"] < 0.01 < beyond["random"],
            ),
        ),
        ("Runs beyond: categories of single runs biased by more than the standard error.",),
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
