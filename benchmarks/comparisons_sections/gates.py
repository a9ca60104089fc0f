"""Gates on simulated benchmarks: wrong verdicts at any moment, and what a verdict costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest, norm

from comparisons_sections.worlds import WORLDS, Scores, World
from evalbudget import Design
from evalbudget.comparisons import GateSampler, Verdict
from judges_sections.found import Found, Target

RUNS = 2000
DELTA = 0.05
POWER = 0.9
_ROOM = 2.5  # items there are, in items of the fixed test


@dataclass(frozen=True)
class Ended:
    """One gate.

    Attributes:
        verdict: None where the items were used up.
        cost: evaluations of the candidate.
    """

    verdict: Verdict | None
    cost: int


def play(scores: Scores, margin: float, seed: int, *, these_items: bool = False) -> Ended:
    """A gate on the real sampler, whose baseline is known."""
    n = scores.baseline.size
    labels = None if scores.cluster is None else tuple(map(str, scores.cluster.tolist()))
    design = Design(items=tuple(map(str, range(n))), models=("baseline", "candidate"), categories=labels)
    sampler = GateSampler(design, margin=margin, delta=DELTA, these_items=these_items, seed=seed)
    table = np.array([scores.baseline, scores.candidate])
    cost = 0
    while (cells := sampler.next_cells()) is not None:
        cost += int((cells.model == 1).sum())
        sampler.learn(cells, table[cells.model, cells.item])
    return Ended(sampler.evidence(1).verdict, cost)


def needed(world: World, power: float, apart: float, rng: np.random.Generator) -> float:
    """Items of a fixed one-sided paired test of the same error, for a difference ``apart`` from its bound."""
    large = world.draw(rng, 200_000, 0.0)
    difference = large.candidate - large.baseline
    variance = float(difference.var())
    if large.cluster is not None:  # the test knows of clusters, too
        sums = np.bincount(large.cluster, weights=difference)
        variance = float((sums**2).sum()) / difference.size
    return float((norm.ppf(1.0 - DELTA) + norm.ppf(power)) ** 2 * variance / apart**2)


def gates(quick: bool, seeds: int | None = None) -> Found:
    """Under no difference, under exactly the margin, and two margins away."""
    runs = 2 if quick else (seeds or RUNS)
    rows, wrong, shares, hindsight = [], {}, {}, {}
    for name, world in WORLDS.items():
        rng = np.random.default_rng(7)
        planned = needed(world, POWER, world.margin, rng)
        n = int(_ROOM * planned)
        for times in (0, -1, -2, 1):
            ended = [play(world.draw(rng, n, times * world.margin), world.margin, run) for run in range(runs)]
            verdicts = [one.verdict for one in ended]
            cost = float(np.mean([one.cost for one in ended]))
            bad = Verdict.WORSE if times >= 0 else Verdict.NOT_WORSE
            failed = verdicts.count(bad)
            right = sum(verdict is not None and verdict is not bad for verdict in verdicts) / runs
            wrong[name, times] = failed
            equal = needed(world, min(right, 0.999), 2 * world.margin, rng)
            if times in (-2, 1):
                shares[name, times], hindsight[name, times] = cost / planned, cost / equal
            rows.append(
                (
                    name,
                    {0: "equal", -1: "worse by the margin", -2: "worse by 2", 1: "better by 1"}[times],
                    f"{failed / runs:.3f}",
                    f"{right:.3f}",
                    f"{cost:,.0f}",
                    f"{cost / planned:.2f}",
                    f"{cost / equal:.2f}" if times in (-2, 1) else "",
                )
            )
    kept = all(binomtest(k, runs, DELTA, alternative="greater").pvalue > 0.001 for k in wrong.values())
    margins = ", ".join(f"{world.margin:g} ({name})" for name, world in WORLDS.items())
    most, dear = max(shares.values()), max(hindsight.values())
    return Found(
        f"{runs:,} gates per row, at a margin of {margins} of the scores' range and an error of "
        f"{DELTA:g}, on "
        "the real sampler; the baseline's scores are known. "
        f"The fixed paired test of the same error is planned for a power of {POWER:g} where there is no "
        "difference (it has to tell 0 from the margin), or, with hindsight, for the true difference "
        "and the power "
        f"that the gate had. A benchmark has {_ROOM:g} times the items of the planned test.",
        (
            "world",
            "candidate",
            "wrong verdicts",
            "right",
            "evaluations",
            "of the planned test",
            "of one planned with hindsight",
        ),
        tuple(rows),
        targets=(
            Target(
                f"wrong verdicts at most {DELTA:g} under equality and under exactly the margin",
                f"at most {max(wrong.values()) / runs:.3f}",
                kept,
            ),
            Target("two margins away, at most .6 of the planned test", f"at most {most:.2f}", most <= 0.6),
            Target("the same against a test planned with hindsight", f"at most {dear:.2f}", dear <= 0.6),
        ),
        notes=(
            "Two margins away: worse by 2 is two margins from no difference, and better by 1 two "
            "margins from "
            "what is not acceptable.",
        ),
    )


def these_items(quick: bool, seeds: int | None = None) -> Found:
    """The claim about a finite pool, whose mean difference is exactly 0, or exactly the margin."""
    runs, n = (5, 40) if quick else (seeds or RUNS, 400)
    rows, wrong = [], []
    for name in ("pass or fail", "skewed"):
        world = WORLDS[name]
        rng = np.random.default_rng(11)
        for times in (0, -1, -2, 1):
            delta = round(times * world.margin * n) / n
            ended = [
                play(_exactly(world.draw(rng, n, delta), delta), world.margin, run, these_items=True)
                for run in range(runs)
            ]
            bad = Verdict.WORSE if times >= 0 else Verdict.NOT_WORSE
            failed = sum(one.verdict is bad for one in ended)
            wrong.append(failed)
            cost = float(np.mean([one.cost for one in ended]))
            rows.append(
                (
                    name,
                    f"{delta:+.3f}",
                    f"{failed / runs:.3f}",
                    f"{sum(one.verdict is None for one in ended) / runs:.3f}",
                    f"{cost:,.0f}",
                    f"{cost / n:.2f}",
                )
            )
    kept = all(binomtest(k, runs, DELTA, alternative="greater").pvalue > 0.001 for k in wrong)
    return Found(
        f"{runs:,} gates per row with --these-items, on pools of {n} items whose mean difference is as "
        "given.",
        ("world", "difference", "wrong verdicts", "undecided", "evaluations", "of the pool"),
        tuple(rows),
        targets=(Target(f"wrong verdicts at most {DELTA:g}", f"at most {max(wrong) / runs:.3f}", kept),),
    )


def _exactly(scores: Scores, delta: float) -> Scores:
    """The same with some of the candidate's scores turned round, so that the mean difference is delta."""
    candidate = scores.candidate.copy()
    off = round((candidate - scores.baseline).sum() - delta * candidate.size)
    turn = np.flatnonzero(candidate == (1.0 if off > 0 else 0.0))[: abs(off)]
    candidate[turn] = 1.0 - candidate[turn]
    return Scores(scores.baseline, candidate, scores.cluster)
