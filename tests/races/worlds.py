"""Small races with known scores, played cell by cell as a host would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from evalbudget import Cell, Design, Reading, Request
from evalbudget.book import Book
from evalbudget.races._config import RaceConfig
from evalbudget.races._lanes import Asked
from evalbudget.races._purchase import RacePurchase
from evalbudget.races.prediction import FactorModel
from evalbudget.statistics._bounds import FloatArray

MODELS = tuple(f"lab/model-{letter}" for letter in "abcdefgh")


def table(chances: Mapping[int, float] | list[float], items: int, seed: int) -> FloatArray:
    """Scores of 0 and 1; each model is right with its own chance."""
    given = np.array(list(chances.values()) if isinstance(chances, Mapping) else chances)
    return (np.random.default_rng(seed).random((given.size, items)) < given[:, None]).astype(float)


def worlds(seed: int, items: int = 7) -> dict[str, FloatArray]:
    """Scores of each cell, nan where it always fails; shape (models, items)."""
    rng = np.random.default_rng(seed)
    plain = table([0.8, 0.6, 0.4], items, seed)
    twice = np.vstack([plain[0], plain[0], plain[2]])
    tied = np.vstack([plain[1], rng.permutation(plain[1]), plain[2]])
    flawed = np.where(rng.random(plain.shape) < 0.15, np.nan, plain)
    broken = np.vstack([plain, np.full(items, np.nan)])
    return {
        "plain": plain,
        "graded": np.round(rng.random((3, items)), 1),
        "a duplicate": twice,
        "a tie": tied,
        "all equal": np.ones((3, items)),
        "failures": flawed,
        "a broken model": broken,
    }


def new_race(scores: FloatArray, budget: int | None, sampler: str, seed: int, **options: Any) -> RacePurchase:
    """A race over these scores; nothing asked yet."""
    m, n = scores.shape
    predictor = None
    if sampler == "pulse":  # any path will do: what is learned from it is given
        predictor, options = history(n, seed), {**options, "history": __file__}
    config = RaceConfig.of(budget=budget, sampler=sampler, seed=seed, **options)
    return RacePurchase(config, MODELS[:m], [f"i{k}" for k in range(n)], widths=[n] * m, predictor=predictor)


def history(items: int, seed: int, models: int = 12) -> FactorModel:
    """Of other models on the same items."""
    rng = np.random.default_rng([seed, 7])
    scores = (rng.random((models, items)) < rng.random(items)).astype(float)
    return FactorModel.train(scores, rank=0, ridge=1.0, items=[f"i{k}" for k in range(items)])


def design(models: int, items: int) -> Design:
    """With plain names."""
    return Design(items=tuple(f"i{k}" for k in range(items)), models=tuple(f"m{k}" for k in range(models)))


def factors(
    items: tuple[str, ...],
    rng: np.random.Generator | None = None,
    *,
    models: int = 20,
    spread: float = 1.0,
    level: float = 0.0,
) -> FactorModel:
    """A history of drawn factors: a level and one skill of each model, which items ask for more or less."""
    rng = rng or np.random.default_rng(3)
    V = np.column_stack([np.ones(len(items)), spread * rng.standard_normal(len(items))])
    return FactorModel.of_factors(V, items, level + rng.standard_normal((models, 2)))


def finish(sampler: Any, scores: FloatArray, budget: int | None = None) -> Any:
    """Tell a sampler the scores[model, item] that it asks for, round by round, and give it back."""
    while budget is None or sampler.asked < budget:
        cells = sampler.next_cells(None if budget is None else budget - sampler.asked)
        if cells is None:
            break
        sampler.learn(cells, scores[cells.model, cells.item])
    return sampler


def buy(
    book: Book, scores: FloatArray, n: float = np.inf, *, cost: Callable[[Cell], float] = lambda cell: 1.0
) -> list[Reading]:
    """Have up to n cells asked, each answered before the next one, then look; what was answered."""
    told: list[Reading] = []
    came: list[Reading] = []
    while requests := book.trade(came, int(len(told) < n)):
        came = answered(requests, scores, cost=cost)
        told += came
    book.look()
    return told


def answered(
    requests: Iterable[Request], scores: FloatArray, *, cost: Callable[[Cell], float] = lambda cell: 1.0
) -> list[Reading]:
    """By scores[model, item]; nan is a failure."""
    values = ((each, float(scores[each.cell.model, each.cell.item])) for each in requests)
    return [Reading(each, None if np.isnan(value) else value, cost(each.cell)) for each, value in values]


def played(race: RacePurchase, scores: FloatArray) -> RacePurchase:
    """The race at its end."""
    for _ in play(race, scores):
        pass
    return race


def play(race: RacePurchase, scores: FloatArray) -> Iterator[Asked]:
    """Answer cell after cell; the race may be looked at after each of them."""
    waiting: list[Asked] = race.wanted()
    while waiting:
        asked = waiting.pop(0)
        if asked.key not in race.lanes[asked.arm].flights:
            continue  # its model has left
        value = float(scores[asked.arm, int(asked.key[0][1:])])
        race.started(asked.arm, asked.key)
        failed = bool(np.isnan(value))
        race.completed(asked.arm, asked.key, None if failed else value, error="Refused" if failed else None)
        yield asked
        waiting += race.wanted()
