"""The second pass: pools used up without a winner end decided, whatever comes in whatever order."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.audits.policies.play import Floats, begin, config, labels_of, play, world
from tests.claims import variant

from evalbudget.audits._draw import Coin
from evalbudget.audits.policies import AuditConfig, AuditEProcess, AuditOutcome, rebuild
from evalbudget.audits.policies._second_pass import share_of_delta, with_items
from evalbudget.errors import InvalidInputError

JUDGE, HUMAN = world(40, gap=0.02, seed=3)


def small(**options: object) -> AuditConfig:
    return config(n_items=40, **options)


def wanted_now(session: AuditEProcess) -> list[tuple[int, int, int]]:
    drawn = {draw.index: draw for draw in session.draws}
    return [(index, drawn[index].model, drawn[index].item) for index in session.wanted]


def test_a_pool_used_up_is_undecided_and_a_second_pass_is_offered_with_its_price() -> None:
    verdict = play(small(second_pass=False), JUDGE, HUMAN).verdict()
    assert (verdict.outcome, verdict.finished, verdict.winner) == (AuditOutcome.UNDECIDED, True, None)
    assert verdict.pool_used_up
    assert not verdict.exact
    left = sum(e.active for e in verdict.estimates)
    labelled = sum(e.labels for e in verdict.estimates if e.active)
    assert verdict.second_pass_labels == left * 40 - labelled
    assert verdict.second_pass_cost == 20.0 * verdict.second_pass_labels
    assert verdict.reason == (
        f"all 40 items are drawn and {left} systems may still be the best; a second pass would decide it "
        f"(second_pass=true): at most {left * 40 - labelled} more labels, "
        f"{20 * (left * 40 - labelled):,} at 20 each"
    )


def test_it_ends_with_the_best_of_the_pool_and_labels_no_answer_twice() -> None:
    session = play(small(), JUDGE, HUMAN)
    verdict = session.verdict()
    assert (verdict.outcome, verdict.winner) == (AuditOutcome.BEST, int(HUMAN.mean(axis=0).argmax()))
    assert verdict.pool_used_up
    assert "40 items" in verdict.reason
    assert verdict.second_pass_labels == 0
    labelled = [(d.model, d.item) for d in session.draws if d.wanted]
    assert len(labelled) == len(set(labelled)) == verdict.labels <= 120
    second = [d for d in session.draws if d.coin is Coin.NONE]
    assert second
    for draw in second:
        assert draw.wanted
        assert draw.propensity == 1.0
        assert draw.context >= 40
        first = next(d for d in session.draws if (d.model, d.item) == (draw.model, draw.item))
        assert not first.wanted
        assert first.judge == draw.judge or math.isnan(draw.judge)
    judged = {(d.model, d.item) for d in session.draws if not math.isnan(d.judge)}
    assert verdict.judged == len(judged)
    for estimate in verdict.estimates:
        assert estimate.of_pool
        assert estimate.labels == sum(model == estimate.model for model, _ in labelled)
        assert estimate.low - 1e-12 <= HUMAN[:, estimate.model].mean() <= estimate.high + 1e-12
        if estimate.labels == 40:
            assert estimate.low == estimate.high == pytest.approx(HUMAN[:, estimate.model].mean())


@pytest.mark.parametrize(
    ("seed", "options"),
    [
        *((1, {}), (2, {"margin": 0.01}), (1, {"use_judge": False})),
        *(variant(2, {}), variant(1, {"margin": 0.01})),
        variant(2, {"use_judge": False}),
    ],
)
def test_the_order_of_arrival_changes_nothing(seed: int, options: dict[str, object]) -> None:
    straight = play(small(seed=seed, **options), JUDGE, HUMAN)
    shuffled = play(small(seed=seed, **options), JUDGE, HUMAN, shuffle=seed)
    assert sorted(map(repr, straight.draws)) == sorted(map(repr, shuffled.draws))
    assert repr(straight.verdict()) == repr(shuffled.verdict())


@pytest.mark.parametrize("share", [0.5, variant(0.8), variant(0.95), 1.0])
def test_rebuilt_from_draws_and_labels_it_goes_on_to_the_same_verdict(share: float) -> None:
    session = play(small(seed=4), JUDGE, HUMAN)
    labels = labels_of(session, HUMAN)
    last = share * max(d.index for d in session.draws)
    draws = [d for d in session.draws if d.index <= last]
    again = rebuild(begin(small(seed=4)), draws, {d.index: labels[d.index] for d in draws if d.wanted})
    if share == 1.0:
        assert repr(again.verdict()) == repr(session.verdict())
        assert repr(rebuild(begin(small(seed=4)), draws, labels).verdict()) == repr(session.verdict())
        return
    while not again.over:
        batch = again.process.batch
        for context in again.contexts:
            if context.judged and again.process.batch is batch:
                again.judge(context, JUDGE[context.item, list(context.models)])
        for index, model, item in wanted_now(again):
            if again.process.batch is batch and not again.over:
                again.label(index, float(HUMAN[item, model]))
    assert sorted(map(repr, again.draws)) == sorted(map(repr, session.draws))
    assert repr(again.verdict()) == repr(session.verdict())


def test_exactly_equal_systems_are_a_tie_and_others_are_out() -> None:
    human = np.stack([HUMAN[:, 0], HUMAN[::-1, 0], HUMAN[:, 0] * 0.9], axis=1)
    for judge in (JUDGE, np.full_like(JUDGE, np.nan)):
        verdict = play(small(), judge, human).verdict()
        assert verdict.outcome is AuditOutcome.TIE
        assert verdict.finished
        assert verdict.exact
        assert verdict.winner is None
        assert verdict.reason == "2 systems have exactly equal means on these 40 items"
        assert [e.active for e in verdict.estimates] == [True, True, False]


def test_one_item_decides() -> None:
    human = np.stack([HUMAN[:, 0], HUMAN[:, 0], HUMAN[:, 0]], axis=1) * 0.9
    human[7, 1] += 0.001
    verdict = play(small(), JUDGE, human).verdict()
    assert (verdict.outcome, verdict.winner, verdict.exact) == (AuditOutcome.BEST, 1, True)
    assert verdict.reason.startswith("exact: every answer of ")
    assert verdict.reason.endswith("its mean label on these 40 items is the best")


def test_labels_that_run_out_in_the_second_pass_leave_it_undecided_with_the_price_of_the_rest() -> None:
    free = play(small(), JUDGE, HUMAN).verdict()
    most = free.labels - 5
    verdict = play(small(max_labels=most), JUDGE, HUMAN).verdict()
    assert verdict.outcome is AuditOutcome.UNDECIDED
    assert verdict.finished
    assert verdict.labels <= most
    assert f"{most} labels allowed are used up" in verdict.reason
    assert f"at most {verdict.second_pass_labels} more label" in verdict.reason
    assert verdict.second_pass_labels > 0


def test_labels_that_never_come_are_not_held_against_anyone() -> None:
    """The better system's labels do not come: nothing can be exact, and the other does not win."""
    session = begin(small())
    while not session.over:
        batch = session.process.batch
        for context in session.contexts:
            if context.judged:
                session.judge(context, JUDGE[context.item, list(context.models)])
        for index, model, item in wanted_now(session):
            if session.process.batch is batch and not session.over:
                session.label(index, math.nan if model == 0 else float(HUMAN[item, model]))
    verdict = session.verdict()
    assert verdict.outcome is AuditOutcome.UNDECIDED
    assert "never came" in verdict.reason
    assert verdict.estimates[0].low == 0.0
    assert verdict.estimates[0].high == 1.0


def test_a_margin_is_reached_sooner_and_is_true() -> None:
    exact = play(small(), JUDGE, HUMAN).verdict()
    verdict = play(small(margin=0.15), JUDGE, HUMAN).verdict()
    assert verdict.outcome is AuditOutcome.EQUIVALENT
    assert verdict.winner is not None
    means = HUMAN.mean(axis=0)
    assert means.max() - means[verdict.winner] < 0.15
    assert verdict.labels < exact.labels
    assert verdict.reason.startswith("no system is better than this one by 0.15 or more on these 40 items")


def test_one_system_in_a_small_pool_ends_decided_below_the_price_of_all_labels() -> None:
    rng = np.random.default_rng(0)
    human = (rng.random((300, 1)) < 0.85).astype(float)
    judge = np.where(rng.random(human.shape) < 0.9, human, 1.0 - human)
    verdict = play(AuditConfig(1, 300, half_width=0.07), judge, human).verdict()
    (estimate,) = verdict.estimates
    assert verdict.outcome is AuditOutcome.ESTIMATED
    assert verdict.reason == (
        "the interval of the mean over these 300 items is as narrow as wanted, with probability 0.95"
    )
    assert (estimate.high - estimate.low) / 2 <= 0.07
    assert estimate.low <= human.mean() <= estimate.high
    assert verdict.labels < 200
    tiny = play(AuditConfig(1, 20, half_width=0.01), judge[:20], human[:20]).verdict()
    assert tiny.exact
    assert tiny.outcome is AuditOutcome.ESTIMATED
    assert tiny.estimates[0].low == tiny.estimates[0].high == pytest.approx(human[:20].mean())
    assert tiny.reason == "every item is labelled: the mean is exact, for these items"


def test_one_systems_error_is_shared_between_the_passes() -> None:
    assert share_of_delta(config()) == 0.0
    # 2 * .25 * log(40) / .1^2 = 184.4
    assert [share_of_delta(AuditConfig(1, n, half_width=0.1)) for n in (184, 185)] == [0.8, 0.1]
    session = begin(AuditConfig(1, 500, half_width=0.1, delta=0.2))
    levels: list[float] = []
    means = session.process._means
    session.process.interval(0)
    means = session.process._means
    assert means is not None
    means.interval = lambda arm, alpha: levels.append(alpha) or (0.0, 1.0)  # type: ignore[method-assign,func-returns-value]
    session.process.interval(0)
    assert levels == [pytest.approx(0.2 * 0.9)]


def test_evidence_of_the_first_pass_is_where_the_second_begins_but_never_more_than_1() -> None:
    session = play(small(second_pass=False), JUDGE, HUMAN)
    second, policy = session.process.second, session.process
    assert second is not None
    against = policy.first.against
    np.testing.assert_array_equal(second.contest.start, np.minimum(against, 1.0))
    assert (against[second.contenders] < policy.config.threshold).all()
    assert second.contest.start.max() <= 1.0
    assert second.contest.threshold == policy.first.threshold


def test_items_say_something_of_other_answers_to_them() -> None:
    """Against the formula, in loops."""
    rng = np.random.default_rng(5)
    m = rng.uniform(0.3, 0.7, (8, 3))
    label = np.where(rng.random(m.shape) < 0.6, m + rng.choice([-0.2, 0.2], (8, 1)) + 0.05, np.nan)
    found, square = with_items(m, label)
    r = label - m
    pairs = [r[x, i] * r[x, j] for x in range(8) for i in range(3) for j in range(3) if i != j]
    pairs = [p for p in pairs if p == p]
    s = np.nanmean(r**2)
    b = float(np.mean(pairs))
    assert b > 0.0
    kappa = max(s - b, 0.0) / b
    off: list[list[float]] = [[], [], []]
    for x in range(8):
        known = [r[x, k] for k in range(3) if label[x, k] == label[x, k]]
        effect = sum(known) / (len(known) + kappa) if known else 0.0
        for k in range(3):
            assert found[x, k] == pytest.approx(min(max(m[x, k] + effect, 0.0), 1.0))
            if label[x, k] == label[x, k]:
                others = sum(known) - r[x, k]
                n = len(known) - 1
                without = others / (n + kappa) if n + kappa > 0 else 0.0
                off[k].append((label[x, k] - min(max(m[x, k] + without, 0.0), 1.0)) ** 2)
    everything = sum(map(sum, off))
    common = (everything + 0.05) / (sum(map(len, off)) + 1)
    for k in range(3):
        assert square[k] == pytest.approx((sum(off[k]) + 8 * common) / (len(off[k]) + 8))
    no_effect = np.array([[0.1, -0.1], [-0.1, 0.1]])
    plain, _ = with_items(np.full((2, 2), 0.5), 0.5 + no_effect)
    np.testing.assert_array_equal(plain, 0.5)


def test_contenders_are_dropped_on_the_way_and_their_answers_not_asked_for_any_more() -> None:
    rng = np.random.default_rng(9)
    human = np.clip(np.linspace(0.8, 0.2, 6) + 0.2 * rng.standard_normal((60, 6)), 0.0, 1.0)
    judge = rng.random(human.shape)
    session = play(AuditConfig(6, 60, pilot=20, labels_per_batch=20), judge, human)
    verdict = session.verdict()
    assert (verdict.outcome, verdict.winner) == (AuditOutcome.BEST, 0)
    assert verdict.labels < 0.8 * 360
    labels: Floats = np.array([e.labels for e in verdict.estimates], dtype=np.float64)
    assert labels[5] < labels[1]


def test_all_equal_two_items_and_one_item_end_decided() -> None:
    flat = np.full((2, 3), 0.5)
    assert play(config(n_items=2), flat, flat).verdict().outcome is AuditOutcome.TIE
    one = np.array([[0.1, 0.2, 0.15]])
    verdict = play(config(n_items=1), one, one).verdict()
    assert (verdict.outcome, verdict.winner, verdict.exact) == (AuditOutcome.BEST, 1, True)


def test_settings_of_the_second_pass_are_checked_and_kept() -> None:
    with pytest.raises(InvalidInputError, match="second_pass"):
        small(second_pass="no")
    for chosen in (True, False):
        settings = replace(small(), second_pass=chosen)
        assert AuditEProcess.of(settings.to_json()).config == settings
