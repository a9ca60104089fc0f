"""One race on recorded scores: rounds until the last budget, and what is known at each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.races.estimates import model_means
from evalbudget.races.prediction import FactorModel
from evalbudget.races.samplers import RacingSampler
from evalbudget.recorded._direction import is_lower_better
from evalbudget.recorded._scores import RecordedScores
from evalbudget.replay._contestant import Contestant
from evalbudget.replay._money import Purse


@dataclass(frozen=True, slots=True)
class RaceOutcome:
    """What is known in one replay at one budget.

    Attributes:
        best: whether the model named has the highest mean of all (an exact tie counts).
        top: whether its mean is near enough to the highest.
        regret: how far below the highest it is.
        evaluations: scores bought, at most the budget.
        covered: share of the models whose interval holds their mean; nan without intervals.
        half_width: of the intervals, mean over models; nan without.
        seconds: wall clock of decisions and bookkeeping, intervals not counted.
        usd: dollars paid; nan where evaluations are counted.
        unasked: models that the money did not pay a single evaluation of; 0 where evaluations are counted.
    """

    best: bool
    top: bool
    regret: float
    evaluations: int
    covered: float
    half_width: float
    seconds: float
    usd: float = np.nan
    unasked: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """Recorded scores of several models under one rater, or the panel of all.

    Attributes:
        models: names.
        items: names.
        scores: recorded repeats moved to the front, shape (models, items, repeats); NaN beyond. Mirrored in
            the bounds where lower is better.
        counts: how many there are, shape (models, items); None where there is one at most.
        bounds: the smallest and the largest possible score.
        costs: of the repeats in dollars, shape of ``scores``; None where none is known.
    """

    models: tuple[str, ...]
    items: tuple[str, ...]
    scores: NDArray[np.floating]
    counts: NDArray[np.int64] | None
    bounds: tuple[float, float]
    costs: NDArray[np.floating] | None = None

    @classmethod
    def of(cls, recorded: RecordedScores, bounds: tuple[float, float] | None) -> Grid:
        """The grid of a recording with one rater.

        Raises:
            InvalidInputError: fewer than two models, several raters, or a score outside the bounds.
        """
        if len(recorded.models) < 2:
            raise InvalidInputError(
                f"the recording has the one model {recorded.models[0]!r}; a race needs two or more"
            )
        if len(recorded.raters) > 1:
            names = ", ".join(recorded.raters[:5])
            raise InvalidInputError(
                f"the recording has {len(recorded.raters)} raters ({names}); a race goes by one: name it "
                "with --rater (rater= in Python)"
            )
        scores = recorded.scores[:, :, 0, :]
        low, high = (0.0, 1.0) if bounds is None else bounds
        outside = np.argwhere((scores < low) | (scores > high))
        if outside.size:
            m, i, r = outside[0].tolist()
            raise InvalidInputError(
                f"model {recorded.models[m]!r} has the score {scores[m, i, r]:g} on item "
                f"{recorded.items[i]!r}, outside {low:g} to {high:g}; declare the smallest and the largest "
                "possible score with --score-range LOW..HIGH (score_range= in Python)"
            )
        if is_lower_better(recorded):
            scores = low + high - scores
        costs = None if recorded.costs is None else recorded.costs[:, :, 0, :]
        counts = None
        if scores.shape[2] > 1:
            counts = recorded.counts[:, :, 0]
            front = np.argsort(np.isnan(scores), axis=2, kind="stable")
            scores = np.take_along_axis(scores, front, axis=2)
            costs = None if costs is None else np.take_along_axis(costs, front, axis=2)
        return cls(recorded.models, recorded.items, scores, counts, (low, high), costs)

    @property
    def n_cells(self) -> int:
        """Models x items."""
        return len(self.models) * len(self.items)

    @property
    def n_missing(self) -> int:
        """Cells without a score."""
        return int(np.isnan(self.scores).all(axis=2).sum())

    @property
    def design(self) -> Design:
        """The names, as samplers want them."""
        return Design(items=self.items, models=self.models)

    def draw(self, seed: int) -> NDArray[np.floating]:
        """A score for every cell, shape (models, items): one of its recorded repeats; NaN without any."""
        return self._drawn(self.scores, seed)

    def draw_costs(self, seed: int) -> NDArray[np.float64]:
        """What the same repeats cost in dollars, shape (models, items); 0 where that is not known."""
        if self.costs is None:
            return np.zeros(self.scores.shape[:2])
        return np.nan_to_num(np.asarray(self._drawn(self.costs, seed), dtype=np.float64))

    def _drawn(self, table: NDArray[np.floating], seed: int) -> NDArray[np.floating]:
        if self.counts is None:
            return np.asarray(table[:, :, 0])
        luck = np.random.default_rng([seed, 5]).random(self.counts.shape)
        which = (luck * self.counts).astype(np.int64)
        return np.asarray(np.take_along_axis(table, which[:, :, None], axis=2)[:, :, 0])


def race_replay(
    grid: Grid,
    contestant: Contestant,
    *,
    seed: int,
    budgets: Sequence[int],
    batch: int | None,
    predictor: FactorModel | None,
    top: float,
    level: float,
    intervals: bool,
    usd: float | None = None,
) -> tuple[RaceOutcome, ...]:
    """Run to the last budget and see who is named at each of them.

    Args:
        grid: where scores come from; a cell without one fails and costs like any other.
        contestant: the sampler, built with the last budget.
        seed: of the scores drawn, which are the same for all samplers, and of the sampler's own choices.
        budgets: numbers of evaluations, increasing.
        batch: for samplers that take one; None for their own.
        predictor: learned from history, for samplers that take one.
        top: how far below the best still counts as ``top``, in units of the scores.
        level: of the intervals, simultaneous over models.
        intervals: whether to compute them.
        usd: what may be paid, in dollars, while ``budgets`` has the number of all cells; None where
            evaluations are counted.
    """
    values = grid.draw(seed)
    truth = np.array([_mean(row) for row in values])
    known = {
        **({"budget": budgets[-1]} if usd is None else {}),
        "score_range": grid.bounds,
        **({} if batch is None else {"batch": batch}),
        **({} if predictor is None else {"predictor": predictor}),
    }
    started, paused = perf_counter(), 0.0
    sampler = contestant.construct(grid.design, seed=seed, known=known)
    if not isinstance(sampler, RacingSampler):
        raise InvalidInputError(f"sampler {contestant.name!r} does not race models: it is no RacingSampler")
    found = []
    purse, unasked = None if usd is None else Purse(usd), 0
    for budget in budgets:
        if purse is not None:
            unasked = _race_for_money(sampler, values, grid.draw_costs(seed), purse)
        while purse is None and sampler.asked < budget:
            cells = sampler.next_cells(budget - sampler.asked)
            if cells is None:
                break
            scores = np.asarray(values[cells.model, cells.item], dtype=np.float64)
            sampler.learn(cells, scores)
        answer = sampler.leader()
        seconds = perf_counter() - started - paused
        at = perf_counter()
        covered, half_width = (
            _intervals(sampler, truth, grid.bounds, level) if intervals else (np.nan, np.nan)
        )
        paused += perf_counter() - at
        regret = float(truth.max() - truth[answer])
        found.append(
            RaceOutcome(
                best=regret <= 0.0,
                top=regret <= top + 1e-12,
                regret=regret,
                evaluations=sampler.asked,
                covered=covered,
                half_width=half_width,
                seconds=seconds,
                usd=np.nan if purse is None else purse.spent,
                unasked=unasked,
            )
        )
    return tuple(found)


def _race_for_money(
    sampler: RacingSampler, values: NDArray[np.floating], costs: NDArray[np.float64], purse: Purse
) -> int:
    """Buy cells one after another while a further one may begin; returns how many models got none."""
    sampler.weigh_costs(purse.amount)
    asked = np.zeros(len(values), dtype=bool)
    dearest = max(float(costs.max()), purse.amount * 1e-9)
    while purse.affords_another:
        # while the dearest of all cells can be paid, so can the dearest so far: nothing else is looked at
        safe = int((purse.amount - purse.spent) // dearest)
        cells = sampler.next_cells(max(1, safe))
        if cells is None:
            break
        paid = costs[cells.model, cells.item]
        for cost in paid.tolist():
            purse.pay(cost)
        asked[cells.model] = True
        sampler.learn(cells, np.asarray(values[cells.model, cells.item], dtype=np.float64), paid)
    return int((~asked).sum())


def _mean(scores: NDArray[np.floating]) -> float:
    """Of those that are there; minus infinity if none is, so that the model is never the best."""
    there = scores[~np.isnan(scores)]
    return float(there.mean(dtype=np.float64)) if there.size else -np.inf


def _intervals(
    sampler: RacingSampler, truth: NDArray[np.float64], bounds: tuple[float, float], level: float
) -> tuple[float, float]:
    """Share of models covered, and mean half-width; models without any score are left out."""
    estimates = model_means([sampler.draws(m) for m in range(truth.size)], bounds=bounds)
    scored = np.isfinite(truth)
    found = [e.confidence_interval(level) for e in estimates]
    low, high = np.array([i.low for i in found])[scored], np.array([i.high for i in found])[scored]
    slack = 1e-9 * (bounds[1] - bounds[0])
    covered = (low - slack <= truth[scored]) & (truth[scored] <= high + slack)
    return float(covered.mean()), float(((high - low) / 2).mean())
