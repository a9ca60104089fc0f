"""By simulation: panels whose judges share few items or none, and components of what is not crossed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications, variant
from tests.judges.estimates.panels import Floats, Panel, items, line, scored, thin
from tests.judges.estimates.test_claims import unbiased

from evalbudget.judges.estimates import JudgeScores, judge_biases, panel_mean, variance_components
from evalbudget.judges.schedules import Cyclic

pytestmark = pytest.mark.claim


def world(K: int, **more: float) -> Panel:
    return Panel(**{"generation": 0.2, "interaction": 0.1, "residual": 0.3, **more}, gamma=line(K))


@pytest.mark.parametrize(
    ("n", "K", "calls", "R", "expected"),
    [
        (5, 8, 10, 300, 1),
        variant(10, 5, 11, 300, 4),
        variant(15, 20, 22, 200, 3),
        (30, 20, 36, 200, 3),
        variant(60, 20, 70, 150, 1),
        (100, 123, 200, 40, 0),
    ],
)
def test_panel_mean_covers_where_judges_share_no_items(
    n: int, K: int, calls: int, R: int, expected: int
) -> None:
    R, rng, failed = replications(R // 5, 3000 if K < 100 else 400), np.random.default_rng([40, n, K]), 0
    for _ in range(R):
        s, gamma = thin(world(K), n, calls, rng)
        interval = panel_mean(s).confidence_interval()
        failed += not interval.low <= gamma.mean() <= interval.high
    binomial_claim(failed, R, at_most=0.065)
    pinned(failed, expected)


@pytest.mark.parametrize(
    ("n", "K", "calls", "noisy", "expected"),
    [
        variant(100, 2, 101, False, 1),
        variant(100, 5, 110, False, 3),
        (30, 5, 60, False, 6),
        variant(50, 20, 200, False, 1),
        (25, 10, 100, True, 3),
    ],
)
def test_all_biases_are_covered_at_once_on_few_scores(
    n: int, K: int, calls: int, noisy: bool, expected: int
) -> None:
    R, rng, failed = replications(50, 1500), np.random.default_rng([41, n, K]), 0
    for _ in range(R):
        s, gamma = thin(world(K), n, calls, rng)
        if noisy:  # judges of very different precision
            noise = rng.normal(size=s.value.size) * np.resize([0.0, 0.5, 2.0], K)[s.judge]
            s = replace(s, value=s.value + noise)
        failed += not judge_biases(s).confidence_intervals().contains(gamma - gamma.mean()).all()
    binomial_claim(failed, R, at_most=0.075)
    pinned(failed, expected)


def test_one_more_score_hardly_moves_a_bias() -> None:
    rng = np.random.default_rng(42)
    for _ in range(20):
        s, _ = thin(world(2), 100, 101, rng)
        more, less = judge_biases(s), judge_biases(s.where(s.epoch == 0))
        assert np.abs(more.value - less.value).max() < 0.5 * less.standard_error.max()
        assert more.standard_error.min() > 0.5 * less.standard_error.min()


def few(K: int, n: int, calls: int) -> Callable[[np.random.Generator], JudgeScores]:
    return lambda rng: thin(world(K), n, calls, rng)[0]


def lost(share: float, m: int) -> Callable[[np.random.Generator], JudgeScores]:
    def draw(rng: np.random.Generator) -> JudgeScores:
        table: Floats = world(8).table(30, m, rng)
        table[rng.random(table.shape) < share] = np.nan
        return JudgeScores.from_table(table, judges=[str(j) for j in range(8)])

    return draw


def kept(K: int, m: int, *, turns: bool) -> Callable[[np.random.Generator], JudgeScores]:
    """One generation of each item, scored m times by every judge, or m times in all by judges in turn."""

    def draw(rng: np.random.Generator) -> JudgeScores:
        table = world(K, generation=0.0).table(30, m, rng) + rng.normal(0, np.sqrt(0.2), (30, 1, 1))
        judges = [str(j) for j in range(K)]
        if turns:
            return scored(table, Cyclic(items(30), judges, epochs=m, seed=int(rng.integers(99))))
        return JudgeScores.from_table(table, judges=judges)

    return draw


def alone(rng: np.random.Generator) -> JudgeScores:
    """One judge per item, three generations."""
    s = JudgeScores.from_table(world(4).table(40, 3, rng), judges="abcd")
    return s.where(s.judge == rng.permutation(np.arange(40) % 4)[s.item])


ROTATED = {"item": 1.0, "generation + item x judge + residual": 0.6}
KEPT = {"item + generation": 1.2, "item x judge + residual": 0.4}


@pytest.mark.parametrize(
    ("draw", "one_generation", "expected"),
    [
        pytest.param(few(5, 10, 20), False, ROTATED, id="10x2"),
        pytest.param(few(5, 60, 72), False, ROTATED, id="60x1.2"),
        pytest.param(
            few(2, 30, 120),
            False,
            {"item": 1.0, "generation + residual": 0.5, "item x judge": 0.1},
            id="twice",
        ),
        pytest.param(
            lost(0.3, 1),
            False,
            {"item + generation": 1.2, "item x judge + residual": 0.4},
            id="failures-once",
        ),
        pytest.param(
            lost(0.5, 3),
            False,
            {"item": 1.0, "generation": 0.2, "item x judge": 0.1, "residual": 0.3},
            id="failures",
        ),
        pytest.param(alone, False, {"item + item x judge": 1.1, "generation + residual": 0.5}, id="alone"),
        pytest.param(
            kept(4, 2, turns=False),
            True,
            {"item + generation": 1.2, "item x judge": 0.1, "residual": 0.3},
            id="kept-all-twice",
        ),
        pytest.param(
            kept(4, 3, turns=True),
            True,
            KEPT,
            id="kept-turns",
        ),
        pytest.param(
            kept(2, 4, turns=True),
            True,
            {"item + generation": 1.2, "item x judge": 0.1, "residual": 0.3},
            id="kept-turns-twice",
        ),
    ],
)
def test_components_are_the_sums_they_are_called(
    draw: Callable[[np.random.Generator], JudgeScores], one_generation: bool, expected: dict[str, float]
) -> None:
    R, rng = replications(9, 2000), np.random.default_rng(43)
    found = []
    for _ in range(R):
        components = variance_components(draw(rng), one_generation=one_generation).components[:-1]
        assert [c.name for c in components] == list(expected)
        found.append([c.value for c in components])
    unbiased(found, list(expected.values()))
