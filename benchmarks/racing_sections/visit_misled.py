"""Visits with histories that mislead, and visits that end when the mean is known well enough."""

from __future__ import annotations

import numpy as np

from evalbudget.design import Design
from evalbudget.races.estimates import benchmark_mean
from evalbudget.races.prediction import FactorModel
from evalbudget.races.samplers import Visit
from judges_sections.found import Floats, Found, Target
from racing_sections.visit import RUNS, SHARES, Fold, recorded, visited, worlds

THIN = 5
COSTS = 1.05
WIDTHS = (0.08, 0.05, 0.03)
EACH = 40  # new models of a fold


def misleading(history: Floats, rng: np.random.Generator) -> dict[str, Floats | None]:
    """No history, and the same one spoiled in three ways."""
    return {
        "none": None,
        "items permuted": history[:, rng.permutation(history.shape[1])],
        "scores inverted": 1.0 - history,
        f"{THIN} models": history[rng.permutation(len(history))[:THIN]],
    }


def visit_misled(quick: bool, seeds: int | None = None) -> Found:
    """Coverage, half-width and error of visits by such histories."""
    rows, targets = [], []
    shares = SHARES[-1:] if quick else SHARES
    for file in ("cruxeval_models", "alpacaeval_models"):
        folds = recorded(file)
        n_new = sum(len(fold.new) for fold in folds)
        draws = 1 if quick else seeds or -(-RUNS // n_new)
        found = {name: _measured(folds, name, shares, draws) for name in misleading(folds[0].history, _rng())}
        for name, table in found.items():
            for share, (covered, half, error) in zip(shares, table, strict=True):
                none = found["none"][shares.index(share)]
                rows.append(
                    (
                        file,
                        f"{share:.0%}",
                        name,
                        f"{covered:.3f}",
                        f"{100 * half:.2f}",
                        f"{half / none[1]:.2f}",
                        f"{error / none[2]:.2f}",
                    )
                )
        noise = 3.0 * np.sqrt(0.95 * 0.05 / (n_new * draws))
        for name in list(found)[1:]:
            least = float(found[name][:, 0].min())
            targets.append(
                Target(
                    f"{file}, {name}: covers .95 in {n_new * draws:,} runs at every number of items",
                    f"at least {least:.3f}",
                    least >= 0.95,
                    least >= 0.95 - noise,
                )
            )
            widest = float((found[name][:, 1] / found["none"][:, 1]).max())
            targets.append(
                Target(
                    f"{file}, {name}: at most {COSTS:g} times as wide as without history",
                    f"at most {widest:.3f} times",
                    widest <= COSTS,
                )
            )
    return Found(
        "As `visit`, the interval for a fixed number of items, by histories that mislead: items permuted, "
        f"scores inverted, or {THIN} models only, beside none. {RUNS:,} runs or more of every row.",
        ("scores", "items read", "history", "coverage", "half-width, points", "/ none", "error / none"),
        tuple(rows),
        tuple(targets),
    )


def _rng() -> np.random.Generator:
    return np.random.default_rng(5)


def _measured(folds: list[Fold], name: str, shares: tuple[float, ...], draws: int) -> Floats:
    """Share covered, mean half-width and root mean square error, shape (shares, 3)."""
    counts = [int(share * folds[0].new.shape[1]) for share in shares]
    covered: list[Floats] = []
    half: list[Floats] = []
    error: list[Floats] = []
    for k, fold in enumerate(folds):
        scores = misleading(fold.history, _rng())[name]
        history = None if scores is None else FactorModel.train(scores)
        truth = np.nanmean(fold.new, axis=1)
        for draw in range(draws):
            found = visited(history, fold.new, counts, 1000 * k + draw, betting=False)
            low, high, value = found[:, :, 0], found[:, :, 1], found[:, :, 4]
            covered.append((low - 1e-9 <= truth) & (truth <= high + 1e-9))
            half.append((high - low) / 2.0)
            error.append((value - truth) ** 2)
    held, width, square = (np.concatenate(each, axis=1).mean(axis=1) for each in (covered, half, error))
    return np.column_stack([held, width, np.sqrt(square)])


def visit_until(quick: bool, seeds: int | None = None) -> Found:
    """Items read until the interval that may be looked at is narrow enough, with and without history."""
    rows, targets = [], []
    widths = WIDTHS[:1] if quick else WIDTHS
    for name, folds in worlds(quick):
        read: dict[str, list[Floats]] = {"none": [], "whole": []}
        held: list[Floats] = []
        for k, fold in enumerate(folds):
            new = fold.new[: 3 if quick else seeds or EACH]
            for known, history in (("none", None), ("whole", FactorModel.train(fold.history))):
                items, right = _until(history, new, widths, k)
                read[known].append(items)
                held += [right] if known == "whole" else []
        without, with_ = (np.concatenate(each) for each in read.values())
        for i, width in enumerate(widths):
            share = float((without[:, i] / with_[:, i]).mean())
            right = np.concatenate(held)[:, i]
            cells = (f"{without[:, i].mean():,.0f}", f"{with_[:, i].mean():,.0f}", f"{share:.2f}")
            rows.append((name, f"{width:g}", f"{folds[0].new.shape[1]:,}", *cells, f"{right.mean():.3f}"))
            noise = 3.0 * np.sqrt(0.95 * 0.05 / right.size)
            targets.append(
                Target(
                    f"{name}, ±{width:g}: no more items than without history, and right in .95",
                    f"{share:.2f} times fewer, right in {right.mean():.3f} of {right.size}",
                    share >= 1.0 and float(right.mean()) >= 0.95,
                    share >= 1.0 and float(right.mean()) >= 0.95 - noise,
                )
            )
    return Found(
        "Items read until the guaranteed interval of a new model, looked at after every batch, is within the "
        "half-width, each model by itself, as `half_width` stops. A pool read to its end is within it.",
        ("scores", "half-width", "items", "read without history", "with", "times fewer", "coverage with"),
        tuple(rows),
        tuple(targets),
    )


def _until(
    history: FactorModel | None, scores: Floats, widths: tuple[float, ...], seed: int
) -> tuple[Floats, Floats]:
    """Items asked until each width, widest first, and whether the interval then held; (models, widths)."""
    names = tuple(map(str, range(scores.shape[1])))
    asked, right = np.zeros((len(scores), len(widths))), np.zeros((len(scores), len(widths)))
    for model, row in enumerate(scores):
        sampler = Visit(Design(names), predictor=history, seed=1000 * seed + model)
        reached = 0
        while reached < len(widths) and (cells := sampler.next_cells()) is not None:
            sampler.learn(cells, row[cells.item])
            interval = benchmark_mean(sampler.draws(0)).confidence_interval(0.95)
            while reached < len(widths) and interval.half_width <= widths[reached]:
                asked[model, reached] = sampler.asked
                right[model, reached] = interval.low - 1e-9 <= np.nanmean(row) <= interval.high + 1e-9
                reached += 1
    return asked, right
