"""Coverage and bias by simulation: panel means, biases, components, differences."""

from __future__ import annotations

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications, variant
from tests.judges.estimates.panels import NAMES, Panel, items, scored

from evalbudget.judges.estimates import (
    JudgeScores,
    Source,
    judge_biases,
    judge_mean_over_sampled_items,
    panel_mean,
    variance_components,
)
from evalbudget.judges.schedules import All, Cyclic, JudgeSchedule, Priced, Random, Single
from references.anova import variance_components_literal

pytestmark = pytest.mark.claim


@pytest.mark.parametrize(
    ("cls", "epochs", "expected"),
    [
        variant(Cyclic, 1, 3),
        variant(Cyclic, 2, 2),
        (Cyclic, 3, 3),
        variant(All, 1, 4),
        (All, 2, 1),
        (Priced, 1, 3),
    ],
)
def test_panel_mean_covers(cls: type[JudgeSchedule], epochs: int, expected: int) -> None:
    R, rng, failed = replications(50, 5000), np.random.default_rng(30), 0
    world = Panel(interaction=0.3)
    more = {"prices": [1, 2, 5, 15, 30]} if cls is Priced else {}
    for seed in range(R):
        s = scored(world.table(80, epochs, rng), cls(items(80), NAMES, epochs=epochs, seed=seed, **more))
        interval = panel_mean(s).confidence_interval()
        failed += not interval.low <= 0.0 <= interval.high
    binomial_claim(failed, R, at_most=0.07 if cls is Priced else 0.06)
    pinned(failed, expected)


def test_panel_mean_covers_with_failures_and_categories() -> None:
    R, rng, failed = replications(60, 5000), np.random.default_rng(31), 0
    labels = [str(i % 3) for i in range(90)]
    for seed in range(R):
        schedule = Cyclic(items(90), NAMES, categories=labels, epochs=2, seed=seed)
        s = scored(Panel().table(90, 2, rng), schedule)
        s = s.where(rng.random(s.value.size) > np.array([0, 0.1, 0.4, 0, 0.2])[s.judge])
        interval = panel_mean(s).confidence_interval()
        failed += not interval.low <= 0.0 <= interval.high
    binomial_claim(failed, R, at_most=0.06)


def test_the_interval_of_a_single_judge_misses_and_that_of_random_judges_does_not() -> None:
    R, rng = replications(60, 2000), np.random.default_rng(33)
    missed = {Single: 0, Random: 0}
    for seed in range(R):
        table = Panel().table(200, 1, rng)
        for cls in missed:
            interval = judge_mean_over_sampled_items(
                scored(table, cls(items(200), NAMES, seed=seed))
            ).confidence_interval()
            missed[cls] += not interval.low <= 0.0 <= interval.high
    assert missed[Single] > 0.6 * R
    binomial_claim(missed[Random], R, at_most=0.06)


@pytest.mark.parametrize(("cls", "epochs"), [variant(Cyclic, 1), (Cyclic, 3), variant(All, 2)])
def test_all_biases_are_covered_at_once(cls: type[JudgeSchedule], epochs: int) -> None:
    R, rng, failed = replications(60, 3000), np.random.default_rng(34), 0
    world = Panel(interaction=0.3)
    truth = np.array(world.gamma) - np.mean(world.gamma)
    for seed in range(R):
        s = scored(world.table(80, epochs, rng), cls(items(80), NAMES, epochs=epochs, seed=seed))
        failed += not judge_biases(s).confidence_intervals().contains(truth).all()
    binomial_claim(failed, R, at_most=0.06)


def unbiased(draws: list[list[float]], truth: list[float]) -> None:
    found = np.array(draws)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert (np.abs(found.mean(axis=0) - truth) < 4 * error).all(), (found.mean(axis=0), truth)


def test_components_are_unbiased_in_every_design() -> None:
    R, rng = replications(45, 3000), np.random.default_rng(36)
    world = Panel(interaction=0.25)
    sg = float((np.array(world.gamma) ** 2).mean())
    crossed, once, rotated, rotated_once = [], [], [], []
    for seed in range(R):
        table = world.table(50, 3, rng)
        whole, one = (JudgeScores.from_table(t, judges=NAMES) for t in (table, table[:, :, :1]))
        crossed.append([c.value for c in variance_components(whole).components])
        once.append([c.value for c in variance_components(one).components])
        s = scored(table, Cyclic(items(50), NAMES, epochs=3, seed=seed))
        rotated.append([c.value for c in variance_components(s).components])
        s = scored(table, Cyclic(items(50), NAMES, seed=seed))
        rotated_once.append([c.value for c in variance_components(s).components])
    unbiased(crossed, [1.0, 0.3, 0.25, 0.5, sg])
    unbiased(once, [1.3, 0.75, sg])
    unbiased(rotated, [1.0, 1.05, sg])
    unbiased(rotated_once, [2.05, sg])


def test_an_interaction_halves_the_papers_generation_variance_but_not_ours() -> None:
    R, rng = replications(18, 1000), np.random.default_rng(37)
    world = Panel(item=2.0, generation=0.2, interaction=0.5, residual=1.0)
    ours, theirs = [], []
    for _ in range(R):
        s = JudgeScores.from_table(world.table(80, 10, rng), judges=NAMES)
        ours.append(variance_components(s)[Source.GENERATION])
        theirs.append(variance_components_literal(s)[0][Source.GENERATION])
    assert np.mean(ours) == pytest.approx(0.2, rel=0.1)
    assert np.mean(theirs) == pytest.approx(0.1, rel=0.2)


@pytest.mark.parametrize("f", [638.0, 446.0, 602.0])
def test_f_statistics_against_table_2(f: float) -> None:
    """The judge variance that the published F implies, n = 80, m = 10, K = 5, gives that F back."""
    R, rng = replications(6, 200), np.random.default_rng(38)
    sg = (f - 1) * 4 / 4000
    line = np.linspace(-1, 1, 5)
    world = Panel(residual=1.0, gamma=tuple((line * np.sqrt(sg / (line**2).mean())).tolist()))
    draws = (JudgeScores.from_table(world.table(80, 10, rng), judges=NAMES) for _ in range(R))
    found = [variance_components_literal(scores)[1] for scores in draws]
    assert np.mean(found) == pytest.approx(f, rel=0.04)


def test_bootstrap_intervals_of_components() -> None:
    R, rng = replications(9, 500), np.random.default_rng(39)
    world = Panel(interaction=0.25)
    truth = [1.0, 0.3, 0.25, 0.5, float((np.array(world.gamma) ** 2).mean())]
    inside = np.zeros(5)
    for _ in range(R):
        s = JudgeScores.from_table(world.table(80, 3, rng), judges=NAMES)
        inside += variance_components(s, bootstrap=100).confidence_intervals().contains(truth)
    for hits in inside.tolist():
        binomial_claim(R - int(hits), R, at_most=0.12)
