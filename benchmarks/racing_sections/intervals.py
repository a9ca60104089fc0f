"""Intervals of a model's benchmark mean: width beside the paper's, coverage at every stopping time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from evalbudget.estimate import Estimate
from evalbudget.races._draws import ModelDraws
from evalbudget.races.estimates import benchmark_mean
from judges_sections.found import Floats, Found, Target
from references.controlled import benchmark_mean_by
from references.pulse import pulse_mean

DRAWN = (64, 256, 1024, 4096)
WORLDS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "chances Beta(.4, .4)": lambda rng, n: rng.beta(0.4, 0.4, n),
    "chances Beta(1, 1)": lambda rng, n: rng.beta(1.0, 1.0, n),
    "every chance .5": lambda rng, n: np.full(n, 0.5),
}

BY: dict[str, Callable[[ModelDraws], Estimate]] = {
    "betting": benchmark_mean,
    "empirical-bernstein": partial(benchmark_mean_by, sequence="empirical-bernstein"),
}


def drawn(scores: Floats, prediction: Floats, order: Floats, count: int, batch: int) -> ModelDraws:
    """The first draws of a random order, predictions fixed beforehand."""
    item = order[:count].astype(np.int64)
    starts = np.arange(0, count, batch)
    left, square = prediction[order.astype(np.int64)], prediction[order.astype(np.int64)] ** 2
    before, before_sq = np.cumsum(left) - left, np.cumsum(square) - square
    return ModelDraws(
        n_items=scores.size,
        known=np.zeros(0),
        value=scores[item],
        item=item,
        batch=np.arange(count) // batch,
        prediction=prediction[item],
        unseen_prediction_sum=left.sum() - before[starts],
        unseen_prediction_sum_sq=square.sum() - before_sq[starts],
    )


def widths(quick: bool, seeds: int | None = None) -> Found:
    """Half-widths at a single look, batches of 64."""
    n, runs = (600, 2) if quick else (12_000, seeds or 10)
    rows, targets = [], []
    for world, chances in WORLDS.items():
        rng = np.random.default_rng(11)
        chance = chances(rng, n)
        scores = (rng.random(n) < chance).astype(np.float64)
        for count in DRAWN[:2] if quick else DRAWN:
            found = []
            for _ in range(runs):
                draws = drawn(scores, chance, rng.permutation(n).astype(np.float64), count, 64)
                estimates = (
                    pulse_mean(draws),
                    benchmark_mean(draws),
                    benchmark_mean_by(draws, sequence="empirical-bernstein"),
                    benchmark_mean_by(draws, coefficient="zero"),
                )
                found.append([estimate.confidence_interval(0.95).half_width for estimate in estimates])
            freedman, betting, bernstein, plain = np.mean(found, axis=0)
            cells = (f"{width:.4f}" for width in (freedman, betting, bernstein, plain))
            rows.append((world, f"{count:,}", *cells, f"{freedman / betting:.1f}"))
            targets.append(
                Target(
                    f"{world}, {count:,} drawn: a third of Freedman's width",
                    f"{freedman / betting:.1f} times shorter",
                    bool(freedman / betting >= 3.0),
                )
            )
    return Found(
        f"{n:,} items, predictions equal to the true chances, batches of 64, 95%, {runs} orders. Freedman is "
        "the paper's and holds at one number of draws; the others hold at all of them.",
        ("scores", "drawn", "Freedman", "betting", "empirical Bernstein", "betting, no predictions", "ratio"),
        tuple(rows),
        tuple(targets),
    )


def coverage(quick: bool, seeds: int | None = None) -> Found:
    """How often an interval is ever wrong, looking after every batch to the end."""
    n, batch, runs = (48, 8, 2) if quick else (240, 8, seeds or 1000)
    worlds: dict[str, tuple[Floats, Floats]] = {
        "all 0": (np.zeros(n), np.full(n, 0.1)),
        "all 1": (np.ones(n), np.full(n, 0.9)),
        "all .5 (ties)": (np.full(n, 0.5), np.full(n, 0.5)),
    }
    rng = np.random.default_rng(5)
    chance = rng.beta(0.5, 0.5, n)
    scores = (rng.random(n) < chance).astype(np.float64)
    worlds["Bernoulli, true chances predicted"] = (scores, chance)
    worlds["Bernoulli, nothing predicted"] = (scores, np.full(n, 0.5))
    worlds["Bernoulli, the opposite predicted"] = (scores, 1.0 - chance)
    rows, targets = [], []
    for world, (values, prediction) in worlds.items():
        truth, wrong = float(values.mean()), {"betting": 0, "empirical-bernstein": 0}
        for _ in range(runs):
            order = rng.permutation(n).astype(np.float64)
            looks = [drawn(values, prediction, order, t, batch) for t in range(batch, n + 1, batch)]
            for name, by in BY.items():
                intervals = [by(look).confidence_interval(0.95) for look in looks]
                wrong[name] += any(not (i.low - 1e-9 <= truth <= i.high + 1e-9) for i in intervals)
        shares = {name: 1.0 - count / runs for name, count in wrong.items()}
        rows.append((world, *(f"{share:.3f}" for share in shares.values())))
        noise = 3.0 * np.sqrt(0.95 * 0.05 / runs)
        targets.append(
            Target(
                f"{world}: right at every look in 95% of the races",
                ", ".join(f"{name} {share:.3f}" for name, share in shares.items()),
                min(shares.values()) >= 0.95,
                min(shares.values()) >= 0.95 - noise,
            )
        )
    return Found(
        f"{n} items read to the end, a look after every {batch}, {runs} random orders; an order counts as "
        "right if every single interval holds the mean.",
        ("scores", "betting", "empirical Bernstein"),
        tuple(rows),
        tuple(targets),
    )
