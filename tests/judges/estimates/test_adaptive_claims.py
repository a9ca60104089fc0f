"""By simulation: repeats that follow scores, judges that take turns, and still honest intervals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications, variant

from evalbudget import Allocation, Design
from evalbudget.hooks._plugins import plugins
from evalbudget.judges.estimates import JudgeScores, judge_corrected, panel_mean
from evalbudget.judges.schedules import Cyclic
from evalbudget.repeats._array_book import ArrayBook
from evalbudget.repeats.estimates import eb_wilson
from evalbudget.repeats.samplers import RepeatSampler
from evalbudget.statistics._bounds import FloatArray

pytestmark = pytest.mark.claim

N, K, TIMES = 60, 3, 8
JUDGES = ("harsh", "fair", "kind")
Draw = Callable[[int, int], float]


def mostly_pass(rng: np.random.Generator) -> tuple[FloatArray, Draw]:
    """Bernoulli items near one end: chances per item and judge, and a draw."""
    p = np.clip(0.9 * rng.beta(9, 1, N)[:, None] + np.array([-0.08, 0.0, 0.08]), 0, 1)
    return p, lambda item, judge: float(rng.random() < p[item, judge])


def ratings(rng: np.random.Generator) -> tuple[FloatArray, Draw]:
    """Normal scores of very different spread, judges two points apart."""
    mean = rng.normal(5, 1, N)[:, None] + np.array([-2.0, 0.0, 2.0])
    sd = np.where(np.arange(N) % 5 == 0, 2.0, 0.3)
    return mean, lambda item, judge: float(rng.normal(mean[item, judge], sd[item]))


def bought(sampler: RepeatSampler, schedule: Cyclic, draw: Draw) -> JudgeScores:
    def judge_of(item: int, epoch: int) -> int:
        return schedule.judges_for(item, epoch)[0]

    sampler.rotate(judge_of)
    book, rows = ArrayBook(sampler), list[tuple[int, int, int, float]]()
    while book.n < TIMES * N and (asked := book.ask(TIMES * N - book.n)) is not None:
        cells = list(zip(asked.item.tolist(), asked.epoch.tolist(), strict=True))
        drawn = [draw(item, judge_of(item, epoch)) for item, epoch in cells]
        book.tell(np.array(drawn))
        rows += [(*cell, judge_of(*cell), value) for cell, value in zip(cells, drawn, strict=True)]
    item, epoch, judge, value = zip(*sorted(rows), strict=True)
    phase = book.bought().phase if sampler.allocation is Allocation.PHASED else None
    return JudgeScores.of(item, epoch, judge, value, judges=JUDGES, n_items=N, phase=phase)


@pytest.mark.parametrize(
    ("world", "name", "options", "expected"),
    [
        variant(mostly_pass, "eb-bernstein", {}, 0),
        (mostly_pass, "robin-hood", {"t0": 3}, 1),
        (ratings, "auto", {}, 2),
    ],
)
def test_the_panel_mean_after_adaptive_repeats(
    world: Callable[[np.random.Generator], tuple[FloatArray, Draw]],
    name: str,
    options: dict[str, float],
    expected: int,
) -> None:
    # the population of items is what is covered, so its mean is the truth
    R = replications(20, 2000)
    big = np.mean([world(np.random.default_rng([s, 99]))[0].mean() for s in range(1000)])
    missed, errors, covered = 0, [], []
    for seed in range(R):
        rng = np.random.default_rng(seed)
        truth, draw = world(rng)
        design = Design(items=tuple(map(str, range(N))), raters=JUDGES)
        sampler = plugins().sampler(name)(design, seed=seed, **options)
        assert isinstance(sampler, RepeatSampler)
        scores = bought(sampler, Cyclic(design.items, JUDGES, epochs=TIMES, seed=seed), draw)
        estimate = panel_mean(scores, allocation=sampler.allocation, fixed_repeats=sampler.fixed_repeats)
        interval = estimate.confidence_interval(0.95)
        missed += not interval.low <= big <= interval.high
        errors.append(estimate.value - truth.mean())
        items = eb_wilson(judge_corrected(scores), fixed_repeats=sampler.fixed_repeats)
        bounds = items.confidence_intervals(0.95)
        mine = truth.mean(axis=1)
        covered.append(float(((bounds.low <= mine) & (mine <= bounds.high)).mean()))
    assert abs(np.mean(errors) / np.std(errors, ddof=1) * np.sqrt(R)) < 4
    binomial_claim(missed, R, at_most=0.07)
    pinned(missed, expected)
    assert np.mean(covered) > 0.93


def test_counting_all_adaptive_scores_is_biased() -> None:
    """What the test above would see."""
    errors = []
    for seed in range(replications(18, 1000)):
        truth, draw = mostly_pass(np.random.default_rng(seed))
        design = Design(items=tuple(map(str, range(N))), raters=JUDGES)
        sampler = plugins().sampler("robin-hood")(design, t0=3, seed=seed)
        assert isinstance(sampler, RepeatSampler)
        scores = bought(sampler, Cyclic(design.items, JUDGES, epochs=TIMES, seed=seed), draw)
        errors.append(panel_mean(scores, allocation=Allocation.FIXED).value - truth.mean())
    assert np.mean(errors) / np.std(errors, ddof=1) * np.sqrt(len(errors)) > 4
