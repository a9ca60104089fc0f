"""Gates that ask every item several times: when, and that verdicts hold."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from tests.claims import binomial_claim, pinned, replications

from evalbudget.backtest import RecordedScores
from evalbudget.comparisons import Baseline, GateConfig, GateEvidence, GateSampler, Verdict, gate_of
from evalbudget.comparisons._evidence import Differences
from evalbudget.errors import InvalidInputError
from evalbudget.races import KnownCell, RacePurchase, leaderboard_of

N, R = 60, 4


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "old.csv"
    path.write_text("item,score\n" + "".join(f"q{i},1\n" for i in range(N)))
    return path


def config(log: Path, **asked: object) -> GateConfig:
    return GateConfig.of(**{"baseline": str(log), "margin": 0.2, "seed": 0, **asked})


def bought(race: RacePurchase, truth: np.ndarray) -> None:
    """Play the candidate's answers, shape (items, answers)."""
    while asked := race.wanted():
        for one in asked:
            item, epoch = one.key
            race.completed(one.arm, one.key, float(truth[int(item), epoch - 1]))


def race_of(chosen: GateConfig, known: np.ndarray, repeats: int) -> RacePurchase:
    items = [str(i) for i in range(len(known))]
    race = RacePurchase(chosen, ["old", "new"], items, repeats=repeats)
    race.lanes[0].absent = True
    cells = [KnownCell((i, e + 1), float(known[int(i)]), attempts=0) for i in items for e in range(repeats)]
    race.replay({0: cells, 1: []})
    return race


@pytest.mark.parametrize(
    ("noise", "repeats", "margin", "expected"),
    [
        (float("nan"), 1.0, 0.2, 1),  # nothing is known of noise
        (0.25, 2.0, 0.5, 1),  # 8 * .25 / .25 * (1/2 + 1) = 12 items
        (0.25, 10.0, 0.2, 3),  # 50 * (.1 + 1/r) <= 24: r = 3 gives 21.7
        (0.25, 10.0, 0.1, 1),  # 200 * .1 alone is 20, and 200 * (.1 + 1/20) = 30 > 24: no number does
        (0.0, 10.0, 0.2, 1),
    ],
)
def test_answers_are_repeated_where_items_do_not_suffice(
    log: Path, noise: float, repeats: float, margin: float, expected: int
) -> None:
    baseline = Baseline("old", "score", {}, noise=noise, repeats=repeats)
    assert config(log, margin=margin).repeats_for(baseline, 24) == expected
    assert config(log, margin=margin, repeats=7).repeats_for(baseline, 24) == 7
    assert config(log, margin=margin, these_items=True).repeats_for(baseline, 24) == 1


def test_the_noise_of_a_baseline() -> None:
    scores = np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, np.nan, np.nan], [0.0, np.nan, np.nan, np.nan]])
    recorded = RecordedScores(scores[None, :, None, :], ("old",), ("a", "b", "c"), ("r",))
    found = Baseline.of(recorded, name="old")
    assert found.noise == pytest.approx((4 * 0.25 + 0.0) / (3 + 1))
    assert found.repeats == pytest.approx(7 / 3)
    once = RecordedScores(scores[None, :, None, :1], ("old",), ("a", "b", "c"), ("r",))
    assert math.isnan(Baseline.of(once, name="old").noise)


def test_items_are_asked_whole_and_told_as_items(log: Path) -> None:
    rng = np.random.default_rng(0)
    chosen = config(log)
    race = race_of(chosen, np.full(N, 0.9), R)
    bought(race, (rng.random((N, R)) < 0.2).astype(float))
    found = gate_of(race, chosen, "score")
    assert found.verdict is Verdict.WORSE
    assert race.evaluations == found.evidence.items == R * found.items
    assert f"on {found.items} of {N} items, each answered {R} times." in str(found)
    assert found.to_dict()["items"] == found.items
    assert found.evidence.clusters == found.items
    read = [standing.readings for standing in leaderboard_of(race).standings]
    assert read == [found.evidence.items] * 2  # of the baseline, whose scores are all known, too


def test_a_missing_answer_leaves_its_item_in(log: Path) -> None:
    chosen = config(log, margin=0.05)
    race = race_of(chosen, np.full(N, 0.5), 2)
    while asked := race.wanted():
        for one in asked:
            lost = one.key == ("3", 2)
            race.completed(one.arm, one.key, None if lost else 0.5, error="E" if lost else None)
    found = gate_of(race, chosen, "score")
    assert found.evidence.failed <= 1
    assert found.n_items == N


def test_clusters_of_items_hold_their_answers(log: Path) -> None:
    labels = [str(i // 5) for i in range(N)]
    race = RacePurchase(config(log), ["old", "new"], [str(i) for i in range(N)], categories=labels, repeats=3)
    assert race.design.n_items == 3 * N
    assert isinstance(race.sampler, GateSampler)
    assert race.design.categories is not None
    assert len(set(race.design.categories)) == N // 5


@pytest.mark.parametrize("repeats", [0, 21])
def test_numbers_that_are_none(log: Path, repeats: int) -> None:
    with pytest.raises(InvalidInputError, match="--repeats"):
        config(log, repeats=repeats)


@pytest.mark.claim
@pytest.mark.parametrize(("drop", "wrong", "count"), [(0.0, Verdict.WORSE, 1), (0.15, Verdict.NOT_WORSE, 0)])
def test_verdicts_are_seldom_wrong(log: Path, drop: float, wrong: Verdict, count: int) -> None:
    runs, failed = replications(8, 2000), 0
    for seed in range(runs):
        rng = np.random.default_rng([5, seed])
        chance = rng.beta(2.0, 1.0, N) * 0.85 + 0.15  # items are a sample
        known = (rng.random((N, 8)) < chance[:, None]).mean(axis=1)
        chosen = config(log, margin=0.15, seed=seed)
        race = race_of(chosen, known, R)
        bought(race, (rng.random((N, R)) < chance[:, None] - drop).astype(float))
        assert isinstance(race.sampler, GateSampler)
        failed += race.sampler.evidence(1).verdict is wrong
    binomial_claim(failed, runs, at_most=0.05)
    pinned(failed, count)


def test_what_the_baseline_failed_on_proves_nothing() -> None:
    old, new = np.array([np.nan] * 30 + [1.0] * 30), np.ones(60)
    for pool in (None, 60):
        for margin, candidate, proved in ((0.3, new, True), (0.05, 0.9 * new, False)):
            found = GateEvidence.of(
                Differences.of(candidate, old),
                np.arange(60),
                margin=margin,
                alpha=0.05,
                largest=1,
                pool=pool,
                span=1.0,
            )
            assert found.failed == 30
            assert (found.verdict is Verdict.NOT_WORSE) == proved  # whatever the baseline would have had


def test_clusters_of_a_log_and_a_model_that_is_asked(log: Path) -> None:
    with pytest.raises(InvalidInputError, match="--cluster doc is read from the baseline's log"):
        config(log, cluster="doc", baseline_model="m")
