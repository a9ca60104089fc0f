"""Section ``sample``: a budget below a reading of every item, spent in the ways there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalbudget import Allocation
from evalbudget.design import Design
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.estimates import (
    ItemReadings,
    Strata,
    mean_of_full_run,
    mean_over_sampled_items,
)
from evalbudget.repeats.samplers import Sample
from repeats_sections.section import Section, Setting, Table, Target

LEVEL = 0.95
N_ITEMS = 2000
BUDGETS = (100, 400, 1000)
SHARES = (0.4, 0.25, 0.15, 0.1, 0.05, 0.03, 0.015, 0.005)
RATES = (0.9, 0.35, 0.7, 0.55, 0.95, 0.2, 0.8, 0.5)
STRATIFIED, RANDOM, TWICE, FIRST = (
    "--sampler sample --strata",
    "--sampler sample",
    "half as many items, twice each",
    "the first items (--limit)",
)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _World:
    """A benchmark whose items are in its file kind by kind, and what each scores.

    Attributes:
        kind: of each item, ascending.
        chance: of each item to pass, for worlds of passes; else its mean.
        sd: of a rating; 0 for passes.
    """

    kind: NDArray[np.int64]
    chance: Floats
    sd: float

    def scores(self, rng: np.random.Generator) -> Floats:
        """Two scores of every item, shape (2, n_items)."""
        if not self.sd:
            return (rng.random((2, self.chance.size)) < self.chance).astype(np.float64)
        return np.clip(np.round(rng.normal(self.chance, self.sd, (2, self.chance.size))), 1.0, 10.0)


def _passes(n_items: int, rng: np.random.Generator) -> _World:
    kind = _kinds(n_items)
    rate = np.array(RATES)[kind]
    return _World(kind, rng.beta(4 * rate, 4 * (1 - rate)), 0.0)


def _ratings(n_items: int, rng: np.random.Generator) -> _World:
    kind = _kinds(n_items)
    return _World(kind, rng.normal(3.0 + 5.0 * np.array(RATES)[kind], 1.0), 1.0)


def _kinds(n_items: int) -> NDArray[np.int64]:
    ends = np.round(np.cumsum(SHARES) * n_items).astype(int)
    return np.searchsorted(ends, np.arange(n_items), side="right").clip(0, len(SHARES) - 1).astype(np.int64)


WORLDS: dict[str, Callable[[int, np.random.Generator], _World]] = {"pass/fail": _passes, "ratings": _ratings}


def _of(items: list[int], scores: Floats, *, times: int = 1) -> ItemReadings:
    epoch = np.repeat(np.arange(times), len(items))
    item = np.tile(items, times)
    return ItemReadings.of(item, epoch, scores[epoch, item], n_items=scores.shape[1])


def _drawn(sampler: Sample, n: int) -> list[int]:
    book, items = ArrayBook(sampler), list[int]()
    while book.n < n and (asked := book.ask(n - book.n)) is not None:
        book.tell(np.zeros(asked.item.size))
        items += asked.item.tolist()
    return items


def _played(world: _World, scores: Floats, budget: int, seed: int) -> dict[str, tuple[float, float, float]]:
    """Estimate and ends of the interval, by way of spending the budget."""
    n_items = world.kind.size
    labels = tuple(map(str, world.kind))
    names = tuple(map(str, range(n_items)))
    found = {}
    for way, categories in ((STRATIFIED, labels), (RANDOM, None)):
        asked = _drawn(Sample(Design(items=names, categories=categories), seed=seed), budget)
        estimate = mean_of_full_run(_of(asked, scores), Strata.of(categories, n_items))
        interval = estimate.confidence_interval(LEVEL)
        found[way] = (estimate.value, interval.low, interval.high)
    half = _drawn(Sample(Design(items=names), seed=seed), budget // 2)
    for way, readings in (
        (TWICE, _of(half, scores, times=2)),
        (FIRST, _of(list(range(budget)), scores)),
    ):
        estimate = mean_over_sampled_items(readings, allocation=Allocation.FIXED)
        interval = estimate.confidence_interval(LEVEL)
        found[way] = (estimate.value, interval.low, interval.high)
    return found


def run(setting: Setting) -> Section:
    """Measure."""
    n_items, budgets = (200, (20, 60)) if setting.quick else (N_ITEMS, BUDGETS)
    seeds = setting.replications(1000)
    rows, errors = [], {}
    done, total = 0, len(WORLDS) * seeds * len(budgets)
    for name, make in WORLDS.items():
        for budget in budgets:
            rng = np.random.default_rng(budget)
            found: dict[str, list[tuple[float, float, float]]] = {}
            for seed in range(seeds):
                world = make(n_items, rng)
                scores = world.scores(rng)
                full = float(scores[0].mean())
                for way, (value, low, high) in _played(world, scores, budget, seed).items():
                    row = (value - full, (high - low) / 2, float(low <= full <= high))
                    found.setdefault(way, []).append(row)
                done += 1
                setting.progress("sample", done, total)
            for way, each in found.items():
                off, half, covered = np.array(each).T
                rmse = float(np.sqrt(np.mean(off**2)))
                errors[name, budget, way] = (rmse, float(half.mean()), float(covered.mean()))
                shown = (f"{rmse:.4f}", f"{half.mean():.4f}", f"{covered.mean():.3f}")
                rows.append((name, f"{budget:,}", way, *shown))
    table = Table(
        "What a run of one epoch over all items would have printed",
        ("world", "budget", "way", "rmse", "half-width", "coverage"),
        tuple(rows),
        f"{seeds} replications; {n_items:,} items in {len(SHARES)} kinds, whose shares are from "
        f"{min(SHARES):.1%} to {max(SHARES):.0%}; the file has them kind by kind. The interval of the last "
        "two ways is the host's, for items like these.",
    )
    return Section(
        "sample",
        "Fewer scores than items",
        "A budget below a reading of every item buys a random sample of them, once each. Instead it could "
        "buy the first items of the file, or fewer items twice.",
        (table,),
        tuple(_targets(errors)),
    )


def _targets(found: dict[tuple[str, int, str], tuple[float, float, float]]) -> list[Target]:
    cases = sorted({(world, budget) for world, budget, _ in found})
    targets = []
    for way in (STRATIFIED, RANDOM):
        covered = [found[*case, way][2] for case in cases]
        text = f"{min(covered):.3f} to {max(covered):.3f}"
        inside = all(0.93 <= round(each, 3) <= 0.97 for each in covered)
        targets.append(Target(f"{way}: coverage .93-.97", text, inside))
    for text, way, other, which in (
        ("strata: half-width, over that of the plain sample, <= 1", STRATIFIED, RANDOM, 1),
        ("once each: rmse, over that of half as many items twice, <= 1", RANDOM, TWICE, 0),
    ):
        ratio = [found[*case, way][which] / found[*case, other][which] for case in cases]
        shown = f"{min(ratio):.2f} to {max(ratio):.2f}"
        targets.append(Target(text, shown, max(ratio) <= 1.0))
    return targets
