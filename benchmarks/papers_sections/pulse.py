"""The PULSE paper (arXiv 2605.10405): who finds the best of a leaderboard, on both budget axes; errata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.races.backtest._replay import Grid, race_replay
from evalbudget.races.prediction import FactorModel
from evalbudget.races.prediction._files import train_cached
from evalbudget.replay._contestant import contestants
from evalbudget.sampler import Kind, Sampler
from judges_sections.found import Floats, Found, Table, Target
from papers_sections.authors_pulse import AuthorsPulse, LoopPulse
from papers_sections.claims import Claim, claims_table, errata_table
from papers_sections.pulse_errata import errata, lambdas
from racing_sections.leaderboard import TEMPER, grid_of, leaderboard

BATCH = 64
GAPS = (0.01, 0.02, 0.03)
WHOLE = "whole pool"
RUNS = 20
BUDGETS = (20_000, 40_000, 64_000, 70_000, 80_000, 90_000, 100_000, 120_000, 150_000, 200_000)
IDENTIFICATION = {0.01: 0.14, 0.02: 0.50, 0.03: 0.31}
"""How far pulse is below UCB-E without the first batches in the section identification of races.md.

There lambda is corrected, the second model is the first one at least ``gap`` behind, and the others below it
are drawn at random.
"""


@dataclass(frozen=True)
class Entrant:
    """A sampler in the race.

    Attributes:
        sampler: name or class.
        options: of its own.
        first: items that every model gets before the sampler chooses.
    """

    sampler: str | type[Sampler]
    options: Mapping[str, Any] = field(default_factory=dict)
    first: int = BATCH


FROZEN = 10**9  # no second refit
LITERAL, LOOP, CODE, CORRECTED = "pulse, text", "pulse, text, Zbar of the loop", "pulse, code", "pulse"
WRITTEN, PLOTTED = "naive-pooling, text", "naive-pooling, as plotted"
ENTRANTS = {
    "ucb-e": Entrant("ucb-e"),
    WRITTEN: Entrant("naive-pooling"),
    PLOTTED: Entrant("naive-pooling", {"tau": FROZEN}),
    LITERAL: Entrant("pulse", {"coefficient": "published"}),
    LOOP: Entrant(LoopPulse, {"coefficient": "published"}),
    CODE: Entrant(AuthorsPulse, {"coefficient": "published"}),
    CORRECTED: Entrant("pulse"),
    "race": Entrant("race", first=16),
}
ALL_PULSE = (LITERAL, LOOP, CODE, CORRECTED)


@dataclass(frozen=True)
class Runs:
    """Races of one sampler.

    Attributes:
        budgets: evaluations in all at which was looked, increasing.
        right: whether the best model was named, shape (n_runs, n_budgets).
        seconds: of one race, mean.
        first: evaluations before the sampler chooses.
    """

    budgets: NDArray[np.int64]
    right: NDArray[np.bool_]
    seconds: float
    first: int

    def until(self, share: float) -> float:
        """Evaluations from which on this share of the races names the best; infinite if there is none."""
        return _until(self.budgets, self.right, share)

    def error(self, share: float) -> float:
        """Standard error of :meth:`until`: 200 resamples of the races; the last budget stands for none."""
        rng, n = np.random.default_rng(0), len(self.right)
        found = [_until(self.budgets, self.right[rng.integers(n, size=n)], share) for _ in range(200)]
        return float(np.minimum(found, self.budgets[-1]).std(ddof=1))

    def at(self, budget: int) -> float:
        """Share of the races that name the best; nan before the first batches and beyond the last budget."""
        if budget < self.budgets[0] or budget > self.budgets[-1]:
            return float("nan")
        return float(self.right[:, np.searchsorted(self.budgets, budget, side="right") - 1].mean())


def _until(budgets: NDArray[np.int64], right: NDArray[np.bool_], share: float) -> float:
    unreliable = np.flatnonzero(right.mean(axis=0) < share - 1e-12)
    after = int(unreliable[-1]) + 1 if unreliable.size else 0
    return float(budgets[after]) if after < budgets.size else float("inf")


def in_descending_order(scores: Floats, gap: float, n_models: int) -> Floats:
    """The paper's subset: the best, the model whose gap is closest to ``gap``, and the next ones below it.

    Args:
        scores: shape (n_models, n_items).
        gap: wanted between the best two.
        n_models: at most so many in all.
    """
    mean = scores.mean(axis=1)
    order = np.argsort(-mean, kind="stable")
    second = 1 + int(np.argmin(np.abs(mean[order[0]] - mean[order[1:]] - gap)))
    return np.asarray(scores[np.r_[order[0], order[second : second + n_models - 1]]], dtype=np.float64)


def pulse(quick: bool, seeds: int | None = None) -> Found:
    """Evaluations to 95% on both axes, accuracy by budget, claims and errata."""
    n_models, n_items, runs = (24, 100, 2) if quick else (2211, 9574, seeds or RUNS)
    step, last, last_of_race = (300, 1200, 1200) if quick else (1000, BUDGETS[-1], 100_000)
    history, test = leaderboard(n_models, n_items)
    factors = train_cached(history, tuple(map(str, range(n_items))), seed=0)
    found: dict[str, dict[str, Runs]] = {}
    sizes = {}
    for name, scores in {
        **{f"{gap:g}": in_descending_order(test, gap, 1000) for gap in GAPS},
        WHOLE: test,
    }.items():
        grid = grid_of(scores)
        top = np.sort(scores.mean(axis=1))[::-1]
        sizes[name] = f"{name}: {len(scores):,} models, gap {top[0] - top[1]:.4f}"
        found[name] = {
            who: _raced(grid, entrant, factors, runs, step, last_of_race if who == "race" else last)
            for who, entrant in ENTRANTS.items()
        }
    off = lambdas(20 if quick else 250)
    looked = BUDGETS if not quick else (300, 600, 1200)
    return Found(
        f"The tempered leaderboard (logits / {TEMPER:g}, one Bernoulli draw) with {n_items:,} items; "
        f"{len(history):,} models as history, {len(test):,} to choose from (a random split: release dates "
        "are not known). Subsets by the paper's rule: the best model, the one whose gap is closest, and "
        f"the next ones below it ({'; '.join(sizes.values())}). Batch {BATCH}, T_0 = 1, a = 1, tau = 1,000 "
        f"steps, {runs} races each. The authors plot budgets without the first batches ({BATCH} items of "
        "every model): both axes are given; for race, the second leaves out its own 16 first items of every "
        "model.",
        (
            "gap",
            "sampler",
            "evaluations to 50%",
            "to 80%",
            "to 95%",
            "±",
            "to 95% without the first",
            "below UCB-E",
            "below UCB-E without the first",
            "seconds",
        ),
        tuple(_row(name, who, races) for name, races in found.items() for who in races),
        _targets(found),
        (
            "From there on at least that share of the races names the best. ± is the standard error of 200 "
            f"resamples of the races. Races end at {last:,} evaluations (race: {last_of_race:,}). pulse has "
            "lambda corrected, the default here; text: coefficient=published, literal; Zbar of the loop: the "
            "same without the first batch in Zbar; code: the authors' formula for lambda, Zbar since the "
            "last refit. Naive-Pooling as plotted is frozen after the first refit.",
            "Factors are the project's own in all rows (rank and ridge by cross-validation, Newton with an "
            "empirical-Bayes prior), not r = 100 by Adam.",
        ),
        (
            _accuracy(found, looked),
            off,
            claims_table(_claims(found, looked)),
            errata_table(errata(off, quick)),
        ),
    )


def _raced(grid: Grid, entrant: Entrant, factors: FactorModel, runs: int, step: int, last: int) -> Runs:
    sampler = entrant.sampler
    name = sampler if isinstance(sampler, str) else sampler.name
    (contestant,) = contestants([sampler], {name: entrant.options}, Kind.MODELS)
    first = min(entrant.first, len(grid.items)) * len(grid.models)
    budgets = list(range(min(first, last - step), last + 1, step))
    right, seconds = [], []
    for seed in range(runs):
        outcomes = race_replay(
            grid,
            contestant,
            seed=seed,
            budgets=budgets,
            batch=None if name == "race" else BATCH,
            predictor=factors,
            top=0.0,
            level=0.95,
            intervals=False,
        )
        right.append([outcome.best for outcome in outcomes])
        seconds.append(outcomes[-1].seconds)
    return Runs(np.array(budgets), np.array(right), float(np.mean(seconds)), first)


def _below(races: Mapping[str, Runs], who: str, *, without_first: bool) -> float:
    """Share of UCB-E's evaluations to 95% that this sampler saves; nan if one of them never gets there."""
    reference, own = races["ucb-e"], races[who]
    ours, theirs = own.until(0.95), reference.until(0.95)
    if not np.isfinite([ours, theirs]).all():
        return float("nan")
    if without_first:
        ours, theirs = ours - own.first, theirs - reference.first
    return 1.0 - ours / theirs if theirs > 0 else float("nan")


def _below_error(races: Mapping[str, Runs], who: str) -> float:
    """Standard error of :func:`_below` without the first batches, races of equal seeds resampled together."""
    reference, own = races["ucb-e"], races[who]
    rng, n = np.random.default_rng(0), len(own.right)
    found = []
    for _ in range(200):
        chosen = rng.integers(n, size=n)
        drawn = {
            name: replace(runs, right=runs.right[chosen]) for name, runs in (("ucb-e", reference), (who, own))
        }
        found.append(_below(drawn, who, without_first=True))
    kept = np.array(found)[np.isfinite(found)]
    return float(kept.std(ddof=1)) if kept.size > 1 else float("nan")


def _row(name: str, who: str, races: Mapping[str, Runs]) -> tuple[str, ...]:
    own = races[who]
    until = own.until(0.95)
    return (
        name,
        who,
        *(_calls(own, share) for share in (0.5, 0.8, 0.95)),
        f"{own.error(0.95):,.0f}",
        f"{until - own.first:,.0f}" if np.isfinite(until) else "-",
        *("-" if who == "ucb-e" else _share(_below(races, who, without_first=w)) for w in (False, True)),
        f"{own.seconds:.1f}",
    )


def _calls(own: Runs, share: float) -> str:
    until = own.until(share)
    return f"{until:,.0f}" if np.isfinite(until) else f"over {own.budgets[-1]:,}"


def _share(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:+.0%}"


def _accuracy(found: Mapping[str, Mapping[str, Runs]], looked: tuple[int, ...]) -> Table:
    rows = []
    for name, races in found.items():
        for who, own in races.items():
            shares = [own.at(budget) for budget in looked]
            rows.append((name, who, *("-" if np.isnan(s) else f"{s:.2f}" for s in shares)))
    return Table(
        "Accuracy: share of the races that name the best",
        ("gap", "sampler", *(f"{budget:,}" for budget in looked)),
        tuple(rows),
        ("Evaluations in all. - : before the first batches are complete, or beyond the end of the races.",),
    )


def _targets(found: Mapping[str, Mapping[str, Runs]]) -> tuple[Target, ...]:
    targets = []
    for gap, expected in IDENTIFICATION.items():
        races = found[f"{gap:g}"]
        own = _below(races, LITERAL, without_first=True)
        error = _below_error(races, LITERAL)
        corrected = _share(_below(races, CORRECTED, without_first=True))
        targets.append(
            Target(
                f"gap {gap:g}: pulse as in the text {expected:.0%} below UCB-E, without the first batches",
                f"{_share(own)} ±{error:.0%}; lambda corrected {corrected} "
                f"±{_below_error(races, CORRECTED):.0%}",
                bool(own >= expected),
                bool(own + 2.0 * error >= expected),
            )
        )
    for without, axis in ((False, "in all"), (True, "without the first")):
        told, ahead = [], []
        for name, races in found.items():
            cut = races["race"].first if without else 0
            ours = races["race"].until(0.95) - cut
            theirs = min(
                races[who].until(0.95) - (races[who].first if without else 0) for who in ("ucb-e", LITERAL)
            )
            told.append(f"{name}: {_count(ours)} against {_count(theirs)}")
            ahead.append(ours <= theirs)
        targets.append(
            Target(f"race ahead of UCB-E and of pulse as in the text, {axis}", "; ".join(told), all(ahead))
        )
    return tuple(targets)


def _count(evaluations: float) -> str:
    return f"{evaluations:,.0f}" if np.isfinite(evaluations) else "not within the race"


def _claims(found: Mapping[str, Mapping[str, Runs]], looked: tuple[int, ...]) -> tuple[Claim, ...]:
    def saved(who: str, *, without_first: bool) -> str:
        shares = [_below(races, who, without_first=without_first) for races in found.values()]
        return " / ".join(_share(share) for share in shares)

    def ahead(who: str, than: str) -> tuple[int, int]:
        pairs = [
            (races[who].at(budget), races[than].at(budget)) for races in found.values() for budget in looked
        ]
        pairs = [pair for pair in pairs if not np.isnan(pair).any()]
        return sum(a >= b for a, b in pairs), len(pairs)

    best = {
        who: max(np.nan_to_num(_below(races, who, without_first=True)) for races in found.values())
        for who in (LITERAL, LOOP)
    }
    names = " / ".join(found)
    every = {who: ahead(who, "ucb-e") for who in (*ALL_PULSE, "race", WRITTEN, PLOTTED)}
    slowest = {who: max(races[who].seconds for races in found.values()) for who in (LITERAL, "race")}
    worst = {
        who: sum(
            races[who].until(0.95) >= max(races[x].until(0.95) for x in ("ucb-e", *ALL_PULSE, "race"))
            for races in found.values()
        )
        for who in (WRITTEN, PLOTTED)
    }
    return (
        Claim(
            f"fewer calls than UCB-E at 95% accuracy, on the authors' axis ({names})",
            "up to 46%",
            f"{saved(LITERAL, without_first=True)}; Zbar of the loop {saved(LOOP, without_first=True)}; "
            f"by their code {saved(CODE, without_first=True)}; "
            f"corrected {saved(CORRECTED, without_first=True)}",
            f"{saved('race', without_first=True)} (race)",
            f"pulse as printed: up to {best[LITERAL]:.0%}; Zbar of the loop: up to {best[LOOP]:.0%}",
        ),
        Claim(
            "the same, all calls counted",
            "not given",
            f"{saved(LITERAL, without_first=False)}; Zbar of the loop {saved(LOOP, without_first=False)}; "
            f"by their code {saved(CODE, without_first=False)}; "
            f"corrected {saved(CORRECTED, without_first=False)}",
            f"{saved('race', without_first=False)} (race)",
            "no claim of the paper: what a user pays",
        ),
        Claim(
            "PULSE at or above UCB-E at every budget",
            "everywhere",
            "{} of {}; Zbar of the loop {} of {}; by their code {} of {}; corrected {} of {}".format(
                *every[LITERAL], *every[LOOP], *every[CODE], *every[CORRECTED]
            ),
            "{} of {} (race)".format(*every["race"]),
            "holds here" if every[LITERAL][0] == every[LITERAL][1] else "not everywhere here",
        ),
        Claim(
            "Naive-Pooling worst everywhere, in calls to 95%",
            "everywhere",
            f"as written in {worst[WRITTEN]}, as plotted in {worst[PLOTTED]} of {len(found)} settings",
            "-",
            "holds here"
            if min(worst.values()) == len(found)
            else "not everywhere as written; where nobody gets to 95%, all tie",
        ),
        Claim(
            "time of a race",
            "60 s (A40)",
            f"{slowest[LITERAL]:.1f} s",
            f"{slowest['race']:.1f} s (race)",
            "not comparable: one CPU core",
        ),
    )
