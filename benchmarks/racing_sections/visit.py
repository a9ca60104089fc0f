"""The score of a new model from a short visit: half-widths, and how many random items each is worth."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evalbudget.backtest import RecordedScores
from evalbudget.design import Design
from evalbudget.races.estimates import benchmark_mean
from evalbudget.races.estimates._draws_for_sequences import of_uneven
from evalbudget.races.prediction import FactorModel
from evalbudget.races.samplers import Visit
from evalbudget.statistics._uneven_draws import weighted_mean
from judges_sections.found import Floats, Found, Target
from places import data_file
from racing_sections.leaderboard import TEMPER, chances
from racing_sections.new_model import by_faq

SHARES = (0.02, 0.05, 0.1, 0.2)
FIFTHS = 5
RUNS = 2000
LEADERBOARD = (1105, 1000)  # models and items
NORMAL = 1.959963984540054
AIMED = 5.0

RANDOM, FAQ = "random items, normal", "faq (tau .25), as published"
PLAIN, OURS = "visit without history", "visit"
PLAIN_BETTING, OURS_BETTING = "visit without history, betting", "visit, betting"
BOUND = "true chances, best draws"
METHODS = (RANDOM, FAQ, PLAIN, OURS, PLAIN_BETTING, OURS_BETTING)


@dataclass(frozen=True)
class Fold:
    """Models that are new, and what is known of the others.

    Attributes:
        history: scores of the others, shape (models, items).
        new: scores of the new ones.
        chance: of the new ones to be right, where it is known.
    """

    history: Floats
    new: Floats
    chance: Floats | None = None


def recorded(file: str) -> list[Fold]:
    """Every model of a matrix is new once, with a fifth of them at a time."""
    scores = RecordedScores.load(data_file(file)).scores[:, :, 0, 0].astype(np.float64)
    fold = np.random.default_rng(0).permutation(len(scores)) % min(FIFTHS, len(scores) // 2)
    return [Fold(scores[fold != k], scores[fold == k]) for k in range(int(fold.max()) + 1)]


def simulated(temper: float, quick: bool) -> list[Fold]:
    """Some of the leaderboard's models, of which a fifth is new; one draw of their scores."""
    n_models, n_items = (40, 150) if quick else LEADERBOARD
    chance = chances(n_items, temper)
    rng = np.random.default_rng([4, int(100 * temper)])
    chance = chance[rng.permutation(len(chance))[:n_models]]
    scores = (rng.random(chance.shape) < chance).astype(np.float64)
    new = n_models // FIFTHS
    return [Fold(scores[new:], scores[:new], chance[:new])]


def worlds(quick: bool) -> Iterator[tuple[str, list[Fold]]]:
    """Matrices by name."""
    for file in ("cruxeval_models", "alpacaeval_models")[: 1 if quick else None]:
        yield file, recorded(file)
    for temper in (TEMPER, 1.0)[: 1 if quick else None]:
        yield f"leaderboard, logits / {temper:g}", simulated(temper, quick)


def visited(
    history: FactorModel | None, scores: Floats, counts: list[int], seed: int, *, betting: bool = True
) -> Floats:
    """Both intervals of every model at each count, and the estimate.

    Returns:
        Shape (counts, models, 5): ends of the one for a fixed count, of the betting one, and the estimate.
    """
    names = tuple(map(str, range(scores.shape[1])))
    sampler = Visit(Design(names, tuple(map(str, range(len(scores))))), predictor=history, seed=seed)
    found = []
    for count in counts:
        while (left := count * len(scores) - sampler.asked) > 0:
            cells = sampler.next_cells(left)
            assert cells is not None
            sampler.learn(cells, scores[cells.model, cells.item])
        row = []
        for model in range(len(scores)):
            draws = sampler.draws(model)
            assert draws.chances is not None
            mean = weighted_mean(of_uneven(draws, draws.chances))
            below, above = mean.margins(0.95)
            any_time = benchmark_mean(draws).confidence_interval(0.95) if betting else None
            ends = (0.0, 1.0) if any_time is None else (any_time.low, any_time.high)
            row.append((max(mean.value - below, 0.0), min(mean.value + above, 1.0), *ends, mean.value))
        found.append(row)
    return np.array(found)


def at_random(scores: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Normal intervals with the factor of the finite pool, shape (models, 2)."""
    ends = []
    for row in scores:
        known = row[~np.isnan(row)]
        read = rng.permutation(known)[:count]
        half = NORMAL * np.sqrt(read.var(ddof=1) * (1.0 / count - 1.0 / known.size))
        ends.append((max(read.mean() - half, 0.0), min(read.mean() + half, 1.0)))
    return np.array(ends)


def random_items(scores: Floats, half: Floats) -> Floats:
    """How many random items have normal intervals of these half-widths, known variances, by model."""
    size = (~np.isnan(scores)).sum(axis=1)
    variance = np.nanvar(scores, axis=1, ddof=1)
    return np.asarray(1.0 / (half**2 / (NORMAL**2 * variance) + 1.0 / size), dtype=np.float64)


def best_draws(chance: Floats, count: int) -> Floats:
    """Half-width of each model if its chances were known and draws as good as they can be."""
    noise = chance * (1.0 - chance)
    variance = np.sqrt(noise).sum(axis=1) ** 2 / count - noise.sum(axis=1)
    return np.asarray(NORMAL * np.sqrt(np.maximum(variance, 0.0)) / chance.shape[1], dtype=np.float64)


@dataclass(frozen=True)
class Measured:
    """Of one method at one count, over folds, models and draws.

    Attributes:
        covered: 1 where the interval held the mean, shape (runs,).
        half: half-widths, shape (runs,).
        worth: random items that are as good, over the items read, each model's mean width; shape (models,).
    """

    covered: Floats
    half: Floats
    worth: Floats


def measured(folds: list[Fold], shares: tuple[float, ...], draws: int) -> dict[tuple[float, str], Measured]:
    """All methods on one matrix."""
    ends: dict[tuple[float, str], list[list[Floats]]] = {}
    counts = [int(share * folds[0].new.shape[1]) for share in shares]
    for k, fold in enumerate(folds):
        history = FactorModel.train(fold.history)
        for each in (ends.setdefault((share, name), []) for share in shares for name in METHODS):
            each.append([])
        for draw in range(draws):
            seed = 1000 * k + draw
            ours, plain = (visited(known, fold.new, counts, seed) for known in (history, None))
            for i, (share, count) in enumerate(zip(shares, counts, strict=True)):
                low, high, _ = by_faq(history, fold.new, count, np.random.default_rng([seed, i]))
                found = {
                    RANDOM: at_random(fold.new, count, np.random.default_rng([seed, i, 1])),
                    FAQ: np.column_stack([low, high]),
                    PLAIN: plain[i, :, :2],
                    OURS: ours[i, :, :2],
                    PLAIN_BETTING: plain[i, :, 2:4],
                    OURS_BETTING: ours[i, :, 2:4],
                }
                for name, interval in found.items():
                    ends[share, name][k].append(interval)
    return {key: _of_ends(folds, each, int(key[0] * folds[0].new.shape[1])) for key, each in ends.items()}


def _of_ends(folds: list[Fold], ends: list[list[Floats]], count: int) -> Measured:
    covered, halves, worth = [], [], []
    for fold, each in zip(folds, ends, strict=True):
        truth, (low, high) = np.nanmean(fold.new, axis=1), np.moveaxis(np.array(each), 2, 0)
        covered.append(((low - 1e-9 <= truth) & (truth <= high + 1e-9)).ravel())
        halves.append((high - low).ravel() / 2.0)
        worth.append(random_items(fold.new, (high - low).mean(axis=0) / 2.0) / count)
    return Measured(np.concatenate(covered).astype(float), np.concatenate(halves), np.concatenate(worth))


def visit(quick: bool, seeds: int | None = None) -> Found:
    """Coverage, half-width and worth in random items; a fifth of the models is new at a time."""
    rows: list[tuple[str, ...]] = []
    targets: list[Target] = []
    for name, folds in worlds(quick):
        n_new = sum(len(fold.new) for fold in folds)
        draws = 2 if quick else seeds or -(-RUNS // n_new)
        shares = SHARES[-1:] if quick else SHARES
        found = measured(folds, shares, draws)
        for (share, method), one in found.items():
            worth = f"{one.worth.mean():.2f}", f"{np.quantile(one.worth, 0.9):.2f}"
            beside = one.half.mean() / found[share, RANDOM].half.mean()
            cells = (f"{one.covered.mean():.3f}", f"{100 * one.half.mean():.2f}", f"{beside:.2f}", *worth)
            rows.append((name, f"{share:.0%}", method, *cells))
            if method == METHODS[-1] and folds[0].chance is not None:
                rows.append((name, f"{share:.0%}", BOUND, *_bound(folds[0], share, found[share, RANDOM])))
        targets += _targets(name, found, shares, n_new * draws)
    return Found(
        "95% intervals of a new model's mean over the benchmark, with four fifths of the models as history; "
        f"{RUNS:,} runs or more of every row (each new model, several draws). Worth: how many random items, "
        "with the normal interval of a finite pool and the variance known, are as narrow, over the items "
        "read; each model's mean width, on average over models, and for the best tenth of them. Normal "
        "intervals, `faq` and `visit` hold at a number of items fixed beforehand; betting ones at all "
        "numbers at once, and `half_width` stops by them. Leaderboards are drawn from published factors, "
        f"once as they are and once with logits divided by {TEMPER:g}, as elsewhere on this page, because "
        "they are too sure of themselves.",
        (
            "scores",
            "items read",
            "interval",
            "coverage",
            "half-width, points",
            "/ random items, normal",
            "worth",
            "best tenth",
        ),
        tuple(rows),
        tuple(targets),
    )


def _bound(fold: Fold, share: float, random: Measured) -> tuple[str, ...]:
    """Cells of the row that nobody can beat without knowing the scores beforehand."""
    assert fold.chance is not None
    count = int(share * fold.new.shape[1])
    half = best_draws(fold.chance, count)
    worth = random_items(fold.new, half) / count
    beside = half.mean() / random.half.mean()
    return (
        "",
        f"{100 * half.mean():.2f}",
        f"{beside:.2f}",
        f"{worth.mean():.2f}",
        f"{np.quantile(worth, 0.9):.2f}",
    )


def _targets(
    name: str, found: dict[tuple[float, str], Measured], shares: tuple[float, ...], runs: int
) -> list[Target]:
    noise = 3.0 * np.sqrt(0.95 * 0.05 / runs)
    targets = []
    for method in (OURS, OURS_BETTING):
        covered = {share: float(found[share, method].covered.mean()) for share in shares}
        targets.append(
            Target(
                f"{name}: {method} covers .95 in {runs:,} runs at every number of items",
                ", ".join(f"{share:.0%} {value:.3f}" for share, value in covered.items()),
                min(covered.values()) >= 0.95,
                min(covered.values()) >= 0.95 - noise,
            )
        )
    worth = {share: found[share, OURS].worth for share in shares}
    best = max(worth.values(), key=lambda each: float(each.mean()))
    targets.append(
        Target(
            f"{name}: at the best number of items, {AIMED:g} times fewer items than at random",
            f"{best.mean():.1f} times fewer on average, {np.quantile(best, 0.9):.1f} for the best tenth of "
            "the models",
            bool(best.mean() >= AIMED),
        )
    )
    widest = max(float(found[share, OURS].half.mean() / found[share, PLAIN].half.mean()) for share in shares)
    targets.append(
        Target(
            f"{name}: narrower with history than without at every number of items",
            f"ratio at most {widest:.2f}",
            widest <= 1.0,
        )
    )
    return targets
