"""PP-LUCB where the paper says nothing: labels that never come, scores that fail, bad settings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.audits.policies.play import Floats, world
from tests.claims import replications

from evalbudget.audits.policies import PPLUCB, AuditOutcome, LucbConfig
from evalbudget.audits.policies._lucb import Allocator, Errata, LucbState
from evalbudget.errors import InvalidInputError, UnknownNameError

JUDGE, HUMAN = world(200)


def begin(n_models: int = 3, n_items: int = 200, **options: Any) -> PPLUCB:
    return PPLUCB(LucbConfig(n_models, n_items, **options))


def play(policy: PPLUCB, judge: Floats = JUDGE, human: Floats = HUMAN) -> PPLUCB:
    while not policy.over:
        drawn = [
            draw
            for context in policy.contexts
            for draw in policy.judge(context, judge[context.item, list(context.models)])
        ]
        for draw in drawn:
            if draw.wanted:
                policy.label(draw.index, float(human[draw.item, draw.model]))
    return policy


@pytest.mark.parametrize("errata", list(Errata))
def test_an_interval_with_a_missing_label_holds_whatever_the_label_is(errata: Errata) -> None:
    rng = np.random.default_rng(3)
    f, y = rng.random((2, 60))
    asked = rng.random(60) < 0.5
    at = np.flatnonzero(asked)[:5]

    def interval(missing: float) -> tuple[float, float]:
        state = LucbState(LucbConfig(2, 1, rho=0.5, errata=errata))
        for t in range(60):
            label = missing if t in at else float(y[t])
            state.learn(0, float(f[t]), 0.5, label if asked[t] else None)
        mean, width = state.means()[0], state.widths()[0]
        return mean - width, mean + width

    low, high = interval(math.nan)
    for value in (0.0, 0.5, 1.0):
        one = interval(value)
        assert low <= one[0]
        assert one[1] <= high


@pytest.mark.claim
def test_failures_that_are_not_at_random_prove_nothing_false() -> None:
    """Equal systems; all bad labels of the first never come, and its bad answers break the judge."""
    trials, wins = replications(1, 60), 0
    for seed in range(trials):
        rng = np.random.default_rng((seed, 11))
        human = (rng.random((2500, 2)) < 0.5).astype(float)
        judge = np.where((human == 0.0) & (np.arange(2) == 0), np.nan, 1.0)
        labels = np.where((human == 0.0) & (np.arange(2) == 0), np.nan, human)
        for given, shown in ((labels, np.ones_like(judge)), (human, judge)):
            policy = begin(2, 2500, rho=1.0, delta=0.2, seed=seed)
            wins += play(policy, shown, given).verdict().outcome is AuditOutcome.BEST
    assert wins == 0


def test_a_score_that_failed_is_the_middle_of_the_scale_and_may_be_audited() -> None:
    verdict = play(begin(rho=0.5, max_labels=60), np.full_like(JUDGE, np.nan)).verdict()
    assert verdict.judged == 0
    assert verdict.labels > 50
    assert verdict.judge_verdict is None
    assert verdict.leader == 0


def test_labels_that_never_came_count_against_the_limit() -> None:
    policy = play(begin(rho=0.5, max_labels=20), JUDGE, np.full_like(HUMAN, np.nan))
    assert sum(draw.wanted for draw in policy.draws) <= 20
    assert "of the 20 labels allowed" in policy.verdict().reason


def test_fixed_pulls_name_the_leader_and_prove_nothing() -> None:
    verdict = play(begin(pulls=101, rho=0.2)).verdict()
    assert verdict.judged == 101
    assert (verdict.outcome, verdict.winner, verdict.leader) == ("undecided", None, 0)
    assert "nothing is proved" in verdict.reason


def test_a_step_is_one_pull_of_leader_and_challenger_as_published_or_a_batch_of_each() -> None:
    for batch in (1, 7):
        policy = play(begin(pulls=84, batch=batch))
        steps: dict[int, list[int]] = {}
        for draw in policy.draws:
            steps.setdefault(draw.policy, []).append(draw.model)
        for models in steps.values():
            assert len(models) == 2 * batch
            assert [models.count(model) for model in sorted(set(models))] == [batch, batch]
        items = [[d.item for d in policy.draws if d.model == k] for k in range(3)]
        assert all(len(set(each)) == len(each) for each in items), "an item was drawn twice"
    most = play(begin(n_items=200, batch=50, max_labels=37, rho=0.6))
    assert sum(draw.wanted for draw in most.draws) <= 37
    assert play(begin(n_items=15, batch=10)).verdict().reason.startswith("all 15 items are drawn")


def test_systems_that_part_are_told_and_the_winner_is_the_leader() -> None:
    judge, human = world(3000, systems=2, gap=0.7)
    verdict = play(begin(2, 3000, rho=0.5, errata="fixed"), judge, human).verdict()
    assert (verdict.outcome, verdict.winner, verdict.leader) == (AuditOutcome.BEST, 0, 0)
    assert verdict.estimates[0].low > verdict.estimates[1].high
    assert verdict.intervals.startswith("95% intervals, anytime")
    assert "as published" in begin(2).verdict().intervals


def test_the_oracle_goes_by_the_truth_it_is_given_also_as_text() -> None:
    truth = [0.01, 0.04, 0.0]
    told = [begin(allocator="oracle", pulls=60, truth=given) for given in (truth, str(truth))]
    assert told[0].config == told[1].config
    draws = play(told[0]).draws
    # after the first pull of an arm: no error where the judge is exact, so that labels are as rare as may be
    assert {d.propensity for d in draws if d.model == 2} == {0.01}
    assert min(d.propensity for d in draws[4:] if d.model == 1) > 0.01


def taught(
    allocator: str, errors: list[list[float]], pulls: list[int], judge: float = 0.5, **options: Any
) -> LucbState:
    """Each arm's labels differ from the judge by these errors; the other pulls are not audited."""
    state = LucbState(LucbConfig(len(errors), 1, allocator=allocator, **options))
    for arm, (own, n) in enumerate(zip(errors, pulls, strict=True)):
        for t in range(n):
            state.learn(arm, judge, 1.0, judge + own[t] if t < len(own) else None)
    return state


def average(state: LucbState, pulls: list[int]) -> float:
    rates = [state.propensity(arm) for arm in range(len(pulls))]
    return sum(n * pi for n, pi in zip(pulls, rates, strict=True)) / sum(pulls)


def test_neyman_audits_an_arm_by_the_root_of_its_mean_squared_error() -> None:
    pulls = [30, 10, 60]
    state = taught("neyman", [[0.1] * 5, [-0.2, 0.2] * 3, [0.3] * 8], pulls, rho=0.2)
    rates = [state.propensity(arm) for arm in range(3)]
    level = 0.2 * 100 / (30 * 0.1 + 10 * 0.2 + 60 * 0.3)
    assert rates == pytest.approx([level * 0.1, level * 0.2, level * 0.3])
    assert average(state, pulls) == pytest.approx(0.2)


def test_the_oracle_is_neyman_with_the_truth_and_needs_no_warm_up() -> None:
    state = taught("oracle", [[], []], [50, 50], truth=[0.01, 0.09], rho=0.2)
    assert [state.propensity(arm) for arm in range(2)] == pytest.approx([0.1, 0.3])


@pytest.mark.parametrize("allocator", ["neyman", "uncertainty-weighted"])
def test_only_the_oracle_looks_at_the_truth(allocator: str) -> None:
    errors = [[0.1, 0.2] * 5, [0.3, 0.4] * 5]
    told, untold = (taught(allocator, errors, [10, 10], truth=truth) for truth in ([0.2, 0.1], None))
    assert [told.propensity(arm) for arm in range(2)] == [untold.propensity(arm) for arm in range(2)]


def test_uncertainty_weighted_is_closeness_times_bias_times_variance() -> None:
    # means of the arms: .5 + their bias
    errors = [[0.3, 0.1, 0.3, 0.1, 0.3, 0.1], [-0.1, 0.2, -0.1, 0.2, -0.1, 0.2], [-0.2] * 5 + [-0.3]]
    pulls = [6, 6, 6]
    state = taught("uncertainty-weighted", errors, pulls, rho=0.3, least_propensity=0.01)
    means = [sum(own) / 6 for own in errors]
    variance = [sum((x - mean) ** 2 for x in own) / 6 for own, mean in zip(errors, means, strict=True)]
    sizes = [(1 - (means[0] - m)) * abs(m) * v for m, v in zip(means, variance, strict=True)]
    level = 0.3 * 3 / sum(sizes)
    assert [state.propensity(arm) for arm in range(3)] == pytest.approx([level * s for s in sizes])


@pytest.mark.parametrize("rho", [0.01, 0.05, 0.3, 0.7, 1.0])
def test_the_average_rate_is_rho_where_rates_are_clipped(rho: float) -> None:
    pulls = [20, 200, 40, 5]
    state = taught("neyman", [[0.5] * 5, [0.01] * 5, [0.1] * 5, [0.3] * 5], pulls, rho=rho)
    assert average(state, pulls) == pytest.approx(rho)
    assert all(0.01 <= state.propensity(arm) <= 1.0 for arm in range(4))


def test_an_arm_begins_with_the_least_rate_and_has_rho_until_it_has_five_labels() -> None:
    state = LucbState(LucbConfig(2, 1, allocator=Allocator.NEYMAN, rho=0.2, least_propensity=0.02))
    assert state.propensity(0) == 0.02
    for _ in range(4):
        state.learn(0, 0.5, 0.2, 0.6)
    state.learn(0, 0.5, 0.2, None)
    state.learn(0, 0.5, 0.2, math.nan)
    assert state.propensity(0) == 0.2
    for arm, error in ((0, 0.1), *[(1, 0.3)] * 5):
        state.learn(arm, 0.5, 0.2, 0.5 + error)
    assert state.propensity(0) < 0.2 < state.propensity(1)


def test_a_judge_without_error_is_audited_at_rho_and_one_arm_without_error_rarely() -> None:
    assert taught("neyman", [[0.0] * 5] * 2, [9, 9]).propensity(0) == 0.1
    some = taught("neyman", [[0.0] * 5, [0.1] * 5], [9, 9], rho=0.8)
    assert [some.propensity(arm) for arm in range(2)] == [0.01, 1.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_models": 1}, "audit-eprocess"),
        ({"judge_price": -1.0}, "judge_price is -1"),
        ({"label_price": math.inf}, "label_price is inf"),
        ({"label_price": 0.0, "allocator": "price-of-precision"}, "whose price is 0"),
        ({"rho": 0.1, "least_propensity": 0.5}, "least propensity"),
        ({"pulls": 0}, "pulls is 0"),
        ({"max_labels": 0}, "max_labels is 0"),
        ({"batch": 0}, "batch is 0"),
        ({"allocator": "oracle"}, "only a simulation knows"),
        ({"truth": "[[1, 2"}, "3 numbers of 0 or more"),
        ({"truth": [0.1] * 2}, "3 numbers of 0 or more"),
        ({"truth": [-0.1] * 3}, "3 numbers of 0 or more"),
        ({"truth": [[0.1] * 3] * 3}, "3 numbers of 0 or more"),
    ],
)
def test_settings_that_cannot_be_used_say_why(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        PPLUCB.of({"n_models": 3, "n_items": 10, **options})


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'uniform'"):
        begin(allocator="unifrom")
    with pytest.raises(UnknownNameError, match="literal"):
        begin(errata="litteral")
    with pytest.raises(
        InvalidInputError, match=r"pp-lucb has no setting 'alocator'\. Did you mean 'allocator'"
    ):
        PPLUCB.of({"n_models": 3, "n_items": 10, "alocator": "neyman"})
