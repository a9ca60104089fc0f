"""What audits claim, by simulation: errors of verdicts, coverage of intervals, and the price of it."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.audits.policies.play import Floats, play
from tests.claims import binomial_claim, pinned, replications, variant

from evalbudget.audits.policies import AuditConfig, AuditOutcome
from evalbudget.audits.policies._lucb import Allocator, Errata, LucbConfig, LucbState
from evalbudget.errors import InvalidInputError

pytestmark = pytest.mark.claim
BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The simulated judges and humans of the benchmark."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield (
            importlib.import_module("audits_sections.play"),
            importlib.import_module("audits_sections.worlds"),
        )


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("paper", 0),
        ("graded", 0),
        ("arm-dependent bias", 0),
        ("three segments", 0),
        ("perfect", 0),
        ("uninformative", 0),
    ],
)
def test_the_best_system_is_found_with_probability_1_minus_delta(bench: Any, name: str, wrong: int) -> None:
    player, worlds = bench
    trials = replications(5, 500)
    failures = 0
    for seed in range(trials):
        world = worlds.WORLDS[name](2000, 0.15, np.random.default_rng((seed, 3)))
        found = player.audit(world, seed=seed)
        failures += not (found.decided and found.named == 0)
    pinned(failures, wrong)
    binomial_claim(failures, trials, at_most=0.05)


@pytest.mark.parametrize(
    ("name", "systems", "options", "expected"),
    [
        ("uninformative", 2, {}, 1),
        variant("rare errors", 2, {}, 0),
        variant("skewed", 2, {}, 0),
        ("fixed pool", 2, {}, 0),
    ],
)
def test_a_winner_among_equals_is_rarely_declared(
    bench: Any, name: str, systems: int, options: dict[str, Any], expected: int
) -> None:
    player, worlds = bench
    trials, wins = replications(8, 1000), 0
    for seed in range(28, 28 + trials):
        world = worlds.NULLS[name](200, systems, np.random.default_rng((seed, 9)))
        wins += player.audit(world, seed=seed, **options).is_wrong_among_equals(world)
    pinned(wins, expected)
    binomial_claim(wins, trials, at_most=0.05)


@pytest.mark.parametrize(("name", "most"), [variant("graded", 6000), ("paper", 8500)])
def test_cost_at_the_gap_of_the_paper_and_against_the_literal_rule(bench: Any, name: str, most: int) -> None:
    player, worlds = bench
    make = worlds.WORLDS[name]
    ours = [
        player.audit(make(4000, 0.1, np.random.default_rng((seed, 3))), seed=seed).cost
        for seed in range(replications(3, 500))
    ]
    literal = [player.lucb(make, 0.1, seed=seed) for seed in range(replications(4, 8))]
    assert np.mean(ours) <= most
    assert np.mean([p.cost for p in literal]) >= 5 * np.mean(ours)
    assert np.mean([p.cost for p in literal]) == pytest.approx(52_000, rel=0.15)
    fixed = [player.lucb(make, 0.1, seed=seed, most=500).cost for seed in range(replications(9, 30))]
    assert np.mean(fixed) == pytest.approx(1529, rel=0.05)


def test_intervals_of_the_means_hold_at_the_stopping_time() -> None:
    trials, missed = replications(9, 600), 0
    for seed in range(trials):
        rng = np.random.default_rng((seed, 4))
        human = np.clip(np.array([0.7, 0.5]) + 0.2 * rng.standard_normal((500, 2)), 0.0, 1.0)
        judge = np.clip(human + 0.1 * rng.standard_normal(human.shape), 0.0, 1.0)
        config = AuditConfig(2, 500, seed=seed, delta=0.2)
        verdict = play(config, judge, human).verdict()
        truth = [_clipped_mean(0.7), _clipped_mean(0.5)]
        missed += any(not e.low <= truth[e.model] <= e.high for e in verdict.estimates)
    pinned(missed, 0)
    binomial_claim(missed, trials, at_most=0.2)


def test_a_single_system_is_estimated_within_its_half_width() -> None:
    trials, missed = replications(6, 400), 0
    for seed in range(14, 14 + trials):
        rng = np.random.default_rng((seed, 5))
        human = (rng.random((3000, 1)) < 0.85).astype(float)
        judge = np.where(rng.random(human.shape) < 0.9, human, 1.0 - human)
        verdict = play(AuditConfig(1, 3000, seed=seed, delta=0.2, half_width=0.06), judge, human).verdict()
        assert verdict.outcome is AuditOutcome.ESTIMATED
        missed += not verdict.estimates[0].low <= 0.85 <= verdict.estimates[0].high
    pinned(missed, 2)
    binomial_claim(missed, trials, at_most=0.2)


def test_a_system_called_good_enough_is_within_the_margin(bench: Any) -> None:
    """The second is worse by exactly the margin: naming it is the error."""
    player, worlds = bench
    trials, wrong = replications(8, 1000), 0
    for seed in range(trials):
        rng = np.random.default_rng((seed, 6))
        human = (rng.random((400, 2)) < np.array([0.7, 0.6])).astype(float)
        judge = np.where(rng.random(human.shape) < 0.9, human, 1.0 - human)
        world = worlds.World(judge, human, np.zeros(400, dtype=np.int64))
        found = player.audit(world, seed=seed, margin=0.1)
        behind = human[:, 0].mean() - human[:, 1].mean() if found.of_pool else 0.1
        wrong += found.decided and found.named == 1 and bool(behind >= 0.1)
    pinned(wrong, 0)
    binomial_claim(wrong, trials, at_most=0.05)


# pp-lucb


@pytest.mark.parametrize("errata", list(Errata))
@pytest.mark.parametrize("allocator", [a for a in Allocator if a is not Allocator.ORACLE])
def test_pp_lucb_intervals_hold(errata: Errata, allocator: Allocator) -> None:
    trials, missed = replications(6, 200), 0
    for seed in range(trials):
        rng = np.random.default_rng((seed, 7))
        state = LucbState(LucbConfig(2, 1, allocator=allocator, errata=errata, delta=0.2))
        y = np.clip(0.6 + 0.2 * rng.standard_normal((400, 2)), 0, 1)
        f = np.clip(y + 0.1 + 0.1 * rng.standard_normal(y.shape), 0, 1)
        truth, out = _clipped_mean(0.6), False
        for t in range(400):
            for k in (0, 1):
                pi = state.propensity(k)
                state.learn(k, float(f[t, k]), pi, float(y[t, k]) if rng.random() < pi else None)
            if t % 20 == 0:
                means, widths = state.means(), state.widths()
                out |= any(abs(m - truth) > w for m, w in zip(means, widths, strict=True))
        missed += out
    pinned(missed, 0)
    binomial_claim(missed, trials, at_most=0.2)


def test_pp_lucb_widths_against_the_formula() -> None:
    state = LucbState(LucbConfig(4, 1, rho=0.1))
    rng = np.random.default_rng(8)
    squares = 0.0
    for _ in range(300):
        f, y = rng.random(2)
        asked = rng.random() < 0.1
        squares += ((y - f) / 0.1) ** 2 if asked else 0.0
        state.learn(0, f, 0.1, y if asked else None)
    d = 0.05 / 4

    def psi(v: float) -> float:
        return 1.7 * math.sqrt(v * (math.log(math.log(2 * v)) + 0.72 * math.log(5.2 / (d / 2))))

    expected = (psi(300 / 4) + psi(squares) + 0.45 * (2 / 0.1) * math.log(10.4 / d)) / 300
    assert state.widths()[0] == pytest.approx(expected)
    assert math.isinf(state.widths()[1])


def test_the_oracle_needs_the_truth() -> None:
    with pytest.raises(InvalidInputError, match="only a simulation knows"):
        LucbConfig(3, 1, allocator=Allocator.ORACLE)


def _clipped_mean(centre: float) -> float:
    x: Floats = np.linspace(-1.5, 2.5, 400_001)
    density = np.exp(-((x - centre) ** 2) / (2 * 0.2**2))
    return float((np.clip(x, 0, 1) * density).sum() / density.sum())


def test_the_errata_fixed_are_wider_however_they_are_named() -> None:
    widths = {}
    for errata in ("literal", "fixed", Errata.LITERAL, Errata.FIXED):
        state = LucbState(LucbConfig(2, 1, errata=errata))
        for t in range(200):
            state.learn(0, 0.5, 0.1, 0.6 if t % 10 == 0 else None)
        widths[errata, type(errata) is str] = state.widths()[0]
    assert widths["literal", True] == widths[Errata.LITERAL, False] < widths["fixed", True]
    assert widths["fixed", True] == widths[Errata.FIXED, False]
