"""How long a decision may be: decisions and evaluations by what a step has, beside the steps before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from evalbudget import Design
from evalbudget.backtest import RecordedScores
from evalbudget.comparisons import GateSampler, Verdict
from evalbudget.races.samplers import PairedEProcess, Race, RacingSampler
from evalbudget.races.samplers._base import Step
from evalbudget.races.samplers._proof_base import ProvingSampler
from evalbudget.statistics._bounds import BoolArray, IntArray
from judges_sections.found import Floats, Found, Table, Target
from places import data_file
from racing_sections.leaderboard import TEMPER

DELTA, MARGIN = 0.05, 0.05
MOST_DECISIONS, MOST_EVALUATIONS = 1.0 / 3.0, 1.06
Random = np.random.Generator
World = Callable[[int, int, Random], Floats]
Make = Callable[[Design, int], RacingSampler]


class RaceBefore(Race):
    """race with its steps before: of 32 cells or 1/100, for challengers that are ranked once."""

    _one_in = 32

    def _duels(self, drawable: IntArray) -> tuple[IntArray, IntArray]:
        leader, items = self._leading(), dict[int, int]()
        promise = self._promise(leader, self._variance)
        others = drawable[drawable != leader]
        others = others[np.lexsort((self._rank[others], -promise[others]))]
        leader_left = bool(self._drawn[leader] < self._n_items)
        for challenger in others.tolist():
            if max(32.0, 0.01 * float(self._drawn.sum())) <= sum(items.values()):
                break
            surer = self._variance[leader] >= self._variance[challenger]
            if leader_left and surer and leader not in items:
                items[leader] = self._portion(leader)
            if not leader_left or self._variance[challenger] >= self._variance[leader]:
                items[challenger] = self._portion(challenger)
        if not items:
            asked = leader if leader_left else int(others[0])
            items[asked] = self._portion(asked)
        return np.array(list(items)), np.array(list(items.values()))

    def _portion(self, model: int) -> int:
        drawn = int(self._drawn[model])
        return min(max(drawn, self._first_items, 1), max(32, drawn // 10))

    def _prove(self, batch: int) -> Step | None:
        return super()._prove(4)


def _in_steps(cls: type[RacingSampler], one_in: int, **options: float) -> Make:
    """The sampler with a step of at least one in so many of the items, or of race's readings, before."""
    name = "_cells_one_in" if cls is Race else "_one_in"
    stepped = type(cls.__name__, (cls,), {name: one_in})
    return lambda design, seed: stepped(design, seed=seed, **options)


PROVED = {
    "before: 4 items, 1/32": _in_steps(PairedEProcess, 32, batch=4),
    "10 items, 1/14": _in_steps(PairedEProcess, 14),
    "10 items, 1/7": _in_steps(PairedEProcess, 7),
    "10 items, 1/4": _in_steps(PairedEProcess, 4),
}
BUDGET: Mapping[str, Make] = {
    "before: 32 cells, 1/100": lambda design, seed: RaceBefore(design, seed=seed),
    "128 cells, 1/48": _in_steps(Race, 48),
    "128 cells, 1/24": _in_steps(Race, 24),
    "128 cells, 1/8": _in_steps(Race, 8),
}
GATE = {
    "before: 8 items, 1/16": _in_steps(GateSampler, 16, batch=8, margin=MARGIN),
    "40 items, 1/14": _in_steps(GateSampler, 14, margin=MARGIN),
    "40 items, 1/7": _in_steps(GateSampler, 7, margin=MARGIN),
    "40 items, 1/4": _in_steps(GateSampler, 4, margin=MARGIN),
}


def simulated(models: int, items: int, rng: Random) -> Floats:
    """Pass or fail by the chances of models and items of the tempered leaderboard, drawn at random."""
    archive = np.load(data_file("leaderboard_factors"))
    U, V = archive["U"].astype(np.float64), archive["V"].astype(np.float64)
    U = U[rng.choice(len(U), models, replace=False)]
    logits = U @ V[rng.integers(len(V), size=items)].T / TEMPER
    chance = 1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0)))
    return np.asarray(rng.random(logits.shape) < chance, dtype=np.float64)


def recorded(file: str) -> World:
    """Models and items of a recorded matrix, drawn at random; a score that is missing is the worst."""

    def drawn(models: int, items: int, rng: Random) -> Floats:
        scores = np.nan_to_num(RecordedScores.load(data_file(file)).scores[:, :, 0, 0].astype(np.float64))
        who = rng.choice(len(scores), min(models, len(scores)), replace=False)
        which = rng.choice(scores.shape[1], min(items, scores.shape[1]), replace=False)
        return np.asarray(scores[np.ix_(who, which)], dtype=np.float64)

    return drawn


def tied(models: int, items: int, rng: Random) -> Floats:
    """Simulated; the second best passes as many items as the best, so that nobody is the only best."""
    scores = simulated(models, items, rng)
    best, second = np.argsort(-scores.sum(axis=1))[:2]
    behind = int(scores[best].sum() - scores[second].sum())
    scores[second, rng.choice(np.flatnonzero(scores[second] == 0.0), behind, replace=False)] = 1.0
    return scores


class Size(NamedTuple):
    """One size of a race: how many seeds, at which shares of all cells a budget may end, which matrix."""

    models: int
    items: int
    seeds: int
    budgets: tuple[float, float]
    matrix: str | None

    def __str__(self) -> str:
        return f"{self.models:,} x {self.items:,}"

    def worlds(self) -> dict[str, World]:
        """By name; the last is the null world."""
        real = {} if self.matrix is None else {self.matrix: recorded(self.matrix)}
        return {"simulated": simulated, **real, "two tied at the top": tied}


SIZES = (
    Size(7, 400, 100, (0.2, 0.5), "cruxeval_models"),
    Size(40, 800, 16, (0.2, 0.5), "alpacaeval_models"),
    Size(1000, 12_000, 2, (0.01, 0.02), None),
)
TINY = (Size(4, 40, 2, (0.2, 0.5), "cruxeval_models"),)


@dataclass(frozen=True)
class Played:
    """One race to its end, or to the last of its budgets.

    Attributes:
        decisions: steps planned, by budget; to the end if there are none.
        right: whether a best one was named then.
        evaluations: to the end; with budgets, after which a best one was named from then on.
        wrong: whether somebody was declared the only best, or worse, who is not.
    """

    decisions: tuple[int, ...]
    right: tuple[bool, ...]
    evaluations: int
    wrong: bool


def play(sampler: RacingSampler, scores: Floats, budgets: tuple[float, ...]) -> Played:
    """A race; one that is over before a budget is used up stays as it is."""
    means = scores.mean(axis=1)
    best = means >= means.max() - 1e-9
    ends = [int(share * scores.size) for share in budgets]
    decisions, until = 0, 0
    made: list[int] = []
    right: list[bool] = []
    while not (budgets and len(made) == len(ends)):
        cells = sampler.next_cells(ends[len(made)] - sampler.asked if budgets else None)
        if cells is None and not budgets:
            break
        if cells is not None:
            sampler.learn(cells, scores[cells.model, cells.item])
            decisions += 1
        if budgets:
            leads = bool(best[sampler.leader()])
            until = until if leads else sampler.asked
            if cells is None or sampler.asked >= ends[len(made)]:
                made.append(decisions)
                right.append(leads)
    return Played(
        tuple(made) or (decisions,),
        tuple(right),
        until if budgets else sampler.asked,
        _is_wrong(sampler, best),
    )


def _is_wrong(sampler: RacingSampler, best: BoolArray) -> bool:
    if isinstance(sampler, GateSampler):  # the last candidate is the best or as good as the baseline
        return sampler.evidence(sampler.design.n_models - 1).verdict is Verdict.WORSE
    assert isinstance(sampler, ProvingSampler)
    winner = None if sampler.proof is None else sampler.proof.winner
    return winner is not None and (best.sum() > 1 or not best[winner])


def ratio(now: list[int], before: list[int]) -> tuple[float, float]:
    """Of the means of paired figures, and its standard error."""
    a, b = np.array(now, float), np.array(before, float)
    r = float(a.mean() / b.mean())
    return r, float((a - r * b).std(ddof=1) / b.mean() / np.sqrt(a.size))


def _compared(
    title: str, sizes: tuple[Size, ...], settings: Mapping[str, Make], runs: int | None, *, budgeted: bool
) -> tuple[Table, list[Target]]:
    """Every setting on every world, beside the first one; targets are the third's, which is the one used."""
    rows, targets = [], []
    wrong, tries = 0, 0
    for size in sizes:
        budgets = size.budgets if budgeted else ()
        for world, draw in size.worlds().items():
            found: dict[str, list[Played]] = {name: [] for name in settings}
            for seed in range(runs or size.seeds):
                scores = draw(size.models, size.items, np.random.default_rng([seed, size.models]))
                if (
                    settings is GATE
                ):  # the best last; the baseline, first, is a middling one, or the other best
                    order = np.argsort(scores.mean(axis=1), kind="stable")
                    first = len(order) - 2 if draw is tied else len(order) // 2
                    scores = scores[[order[first], *np.delete(order, first)]]
                design = Design(*(tuple(map(str, range(n))) for n in scores.T.shape))
                for name, make in settings.items():
                    found[name].append(play(make(design, seed), scores, budgets))
            before = next(iter(found.values()))
            for index, (name, played) in enumerate(found.items()):
                fewer = [
                    ratio([one.decisions[k] for one in played], [one.decisions[k] for one in before])[0]
                    for k in range(len(budgets) or 1)
                ]
                more, error = ratio([one.evaluations for one in played], [one.evaluations for one in before])
                rows.append(
                    (
                        str(size),
                        world,
                        name,
                        ", ".join(f"{n:,.1f}" for n in np.mean([one.decisions for one in played], axis=0)),
                        ", ".join(f"{each:.2f}" for each in fewer),
                        f"{np.mean([one.evaluations for one in played]):,.0f}",
                        f"{more:.3f} ± {error:.3f}",
                        ", ".join(_right(played, before, k) for k in range(len(budgets))),
                        f"{np.mean([one.wrong for one in played]):.3f}",
                    )
                )
                if index == 2:
                    wrong += sum(one.wrong for one in played) * (draw is tied)
                    tries += len(played) * (draw is tied)
                    targets.append(
                        Target(
                            f"{title}, {size}, {world}: a third of the decisions at 1.06 of the evaluations",
                            f"{', '.join(f'{each:.2f}' for each in fewer)} at {more:.3f} ± {error:.3f}",
                            max(fewer) <= MOST_DECISIONS and more <= MOST_EVALUATIONS,
                            max(fewer) <= MOST_DECISIONS and more <= MOST_EVALUATIONS + 2.0 * error,
                        )
                    )
    targets.append(
        Target(
            f"{title}, two tied at the top: wrong in at most .05",
            f"{wrong} of {tries}",
            wrong <= 0.05 * tries,
        )
    )
    columns = (
        "models x items",
        "scores",
        "a step has at least",
        "decisions",
        "of those before",
        "evaluations",
    )
    return Table(title, (*columns, "of those before", "right", "wrong"), tuple(rows)), targets


def _right(played: list[Played], before: list[Played], budget: int) -> str:
    """Share of the races whose leader is a best one, and by how much it differs from the steps before."""
    right = np.array([one.right[budget] for one in played], float)
    off = right - np.array([one.right[budget] for one in before], float)
    return f"{right.mean():.2f} ({off.mean():+.2f} ± {off.std(ddof=1) / np.sqrt(off.size):.2f})"


def steps(quick: bool, seeds: int | None = None) -> Found:
    """Until proved, with a budget, and gates, each at several lengths of its steps."""
    sizes, runs = (TINY, None) if quick else (SIZES, seeds)
    few = (SIZES[0]._replace(seeds=20), SIZES[1]._replace(seeds=4), SIZES[2]._replace(models=7))
    gates = sizes if quick else few
    proved, aims = _compared("until proved", sizes, PROVED, runs, budgeted=False)
    budgets, more_aims = _compared("race with a budget", sizes, BUDGET, runs, budgeted=True)
    gated, last_aims = _compared("gates", gates, GATE, runs, budgeted=False)
    small, large = SIZES[0].budgets, SIZES[2].budgets
    return Found(
        "Until proved (paired-eprocess; race --until-proved decides at the same items), race with budgets of "
        f"{small[0]:.0%} and {small[1]:.0%} of all cells ({large[0]:.0%} and {large[1]:.0%} of 12 million, "
        f"when they are all but proved), and gates at a margin of {MARGIN:g}, which have 6 candidates where "
        "races have 1,000 models. No history; "
        + ", ".join(f"{size}: {runs or size.seeds} seeds" for size in sizes)
        + f" (gates {', '.join(str(runs or size.seeds) for size in gates)})"
        + ", with the same scores and orders for all lengths, so that ratios are paired. The first length is "
        "what it was before, the third the one used. Evaluations of a race with a budget: until it names a "
        "best one to the last budget. Right: the leader at each budget is a best one, and the difference "
        "from before. Wrong: a winner that is not the only best; of gates, the best called worse.",
        proved.columns,
        proved.rows,
        (*aims, *more_aims, *last_aims),
        tables=(budgets, gated),
    )
