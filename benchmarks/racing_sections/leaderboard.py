"""The published construction: a tempered leaderboard, half of its models as history, a gap at the top."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from evalbudget.races.backtest._replay import Grid, RaceOutcome, race_replay
from evalbudget.races.prediction import FactorModel
from evalbudget.races.prediction._files import train_cached
from evalbudget.replay._contestant import contestants
from evalbudget.sampler import Kind
from judges_sections.found import Floats, Found, Target
from places import data_file

TEMPER = 2.0
GAPS = (0.01, 0.02, 0.03)
SAMPLERS = ("race", "pulse", "ucb-e", "naive-pooling")
SEEDS = 20


def chances(n_items: int, temper: float = TEMPER) -> Floats:
    """Of every model of the leaderboard to be right, shape (models, items)."""
    archive = np.load(data_file("leaderboard_factors"))
    U, V = archive["U"].astype(np.float64), archive["V"].astype(np.float64)[:n_items]
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(U @ V.T / temper, -30.0, 30.0))), dtype=np.float64)


def leaderboard(n_models: int, n_items: int, seeds: tuple[int, int] = (1234, 7)) -> tuple[Floats, Floats]:
    """Binary scores of history and of the models to race, shape (models, items) each.

    ``seeds`` draw the scores, and split the models.
    """
    chance = chances(n_items)
    scores = (np.random.default_rng(seeds[0]).random(chance.shape) < chance).astype(np.float64)
    order = np.random.default_rng(seeds[1]).permutation(len(scores))[:n_models]
    half = order.size // 2
    return scores[order[:half]], scores[order[half:]]


def with_gap(scores: Floats, gap: float, n_models: int) -> Floats:
    """The best model, the first one at least ``gap`` behind it, and models below that, shuffled."""
    mean = scores.mean(axis=1)
    order = np.argsort(-mean)
    behind = order[mean[order[0]] - mean[order] >= gap - 1e-12]
    rng = np.random.default_rng(100)
    others = rng.permutation(behind[1:])[: n_models - 2]
    chosen = np.concatenate([order[:1], behind[:1], others])
    return np.asarray(scores[rng.permutation(chosen)], dtype=np.float64)


def grid_of(scores: Floats) -> Grid:
    """As the backtest wants it."""
    models, items = (tuple(map(str, range(n))) for n in scores.shape)
    return Grid(models, items, scores[:, :, None].astype(np.float32), np.ones(scores.shape, int), (0.0, 1.0))


def played(
    grid: Grid, name: str, factors: FactorModel | None, budgets: list[int], seeds: int
) -> Iterator[tuple[RaceOutcome, ...]]:
    """Who is named at each budget, race by race."""
    (contestant,) = contestants([name], {}, Kind.MODELS)
    for seed in range(seeds):
        yield race_replay(
            grid,
            contestant,
            seed=seed,
            budgets=budgets,
            batch=None if name == "race" else 64,
            predictor=factors,
            top=0.0,
            level=0.95,
            intervals=False,
        )


def identified(grid: Grid, name: str, factors: FactorModel | None, budgets: list[int], seeds: int) -> Floats:
    """Share of the races that name the best model, by budget, and the seconds of one race; (budgets, 2)."""
    found = [
        [(outcome.best, outcome.seconds) for outcome in outcomes]
        for outcomes in played(grid, name, factors, budgets, seeds)
    ]
    return np.asarray(np.mean(found, axis=0), dtype=np.float64)


def first_reliable(budgets: list[int], share: Floats) -> float:
    """The budget from which on at least 95% of the races name the best; infinite if there is none."""
    unreliable = np.flatnonzero(share < 0.95)
    after = int(unreliable[-1]) + 1 if unreliable.size else 0
    return float(budgets[after]) if after < len(budgets) else float("inf")


def identification(quick: bool, seeds: int | None = None) -> Found:
    """Evaluations to 95% identification at three gaps."""
    n_models, n_items, runs = (30, 200, 2) if quick else (2211, 9574, seeds or SEEDS)
    history, test = leaderboard(n_models, n_items)
    items = tuple(map(str, range(n_items)))
    factors = train_cached(history, items, seed=0)
    step, last = (250, 1000) if quick else (1000, 240_000)
    rows, calls = [], {}
    for gap in GAPS:
        grid = grid_of(with_gap(test, gap, 1000))
        least = 64 * len(grid.models) if not quick else 500
        for name in SAMPLERS:
            budgets = list(range(step if name == "race" else least, last + 1, step))
            found = identified(grid, name, factors, budgets, runs)
            calls[gap, name] = first_reliable(budgets, found[:, 0])
            shown = f"{calls[gap, name]:,.0f}" if np.isfinite(calls[gap, name]) else f"over {last:,}"
            rows.append((f"{gap:g}", name, shown, f"{found[-1, 1]:.1f}"))
    pulse = [calls[gap, "race"] / calls[gap, "pulse"] for gap in GAPS]
    others = [calls[gap, "race"] / min(calls[gap, name] for name in SAMPLERS[1:]) for gap in GAPS]
    below = [1.0 - calls[gap, "pulse"] / calls[gap, "ucb-e"] for gap in GAPS]
    worst = all(calls[gap, "naive-pooling"] >= max(calls[gap, n] for n in SAMPLERS[:3]) for gap in GAPS)
    return Found(
        f"{len(grid.models)} models x {n_items:,} items of the tempered leaderboard (logits / {TEMPER:g}, "
        f"one Bernoulli draw), {len(history)} other models as history, batch 64, {runs} seeds.",
        ("gap", "sampler", "evaluations to 95%", "seconds"),
        tuple(rows),
        (
            Target(
                "race needs at most half the calls of pulse, on average",
                ", ".join(f"{ratio:.2f}" for ratio in pulse),
                bool(np.mean(pulse) <= 0.5),
            ),
            Target(
                "race never needs over 10% more than the best other",
                ", ".join(f"{ratio:.2f}" for ratio in others),
                max(others) <= 1.1,
            ),
            Target(
                "the paper: PULSE up to 46% below UCB-E",
                ", ".join(f"{share:+.0%}" for share in below),
                max(below) >= 0.2,
            ),
            Target(
                "the paper: Naive-Pooling worst", "in every setting" if worst else "not everywhere", worst
            ),
        ),
    )
