from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.audits.policies.play import begin, config, labels_of, play, world
from tests.claims import variant

from evalbudget.audits._draw import Coin
from evalbudget.audits.policies import AuditConfig, AuditEProcess, AuditOutcome, HumanOnly, rebuild
from evalbudget.errors import InvalidInputError, ReplayError

JUDGE, HUMAN = world()


@pytest.mark.parametrize("shuffle", [1, *map(variant, (2, 3))])
@pytest.mark.parametrize("options", [{}, {"margin": 0.1}, {"max_labels": 33}, {"use_judge": False}])
def test_the_order_of_arrival_changes_nothing(shuffle: int, options: dict[str, object]) -> None:
    straight = play(config(seed=shuffle, **options), JUDGE, HUMAN)
    shuffled = play(config(seed=shuffle, **options), JUDGE, HUMAN, shuffle=shuffle)
    one_by_one = [sorted(map(repr, s.draws)) for s in (straight, shuffled)]  # nan is not equal to nan
    assert one_by_one[0] == one_by_one[1]
    one, other = straight.verdict(), shuffled.verdict()
    assert (one.outcome, one.winner, repr(one.estimates)) == (
        other.outcome,
        other.winner,
        repr(other.estimates),
    )


def test_labels_of_a_batch_are_learned_from_in_draw_order_blocking_on_missing() -> None:
    session = begin(config())
    for context in session.contexts:
        session.judge(context, JUDGE[context.item, list(context.models)])
    drawn = {draw.index: draw for draw in session.draws}
    first, *rest = session.wanted
    for index in rest:
        session.label(index, float(HUMAN[drawn[index].item, drawn[index].model]))
    assert session.process.batch is not None
    assert session.process.batch.number == 0, "a batch with a missing label was learned from"
    assert session.wanted == (first,)
    assert session.verdict().reason == "1 label wanted"
    session.label(first, 0.5)
    assert session.process.batch is not None
    assert session.process.batch.number == 1


def test_predictions_propensities_and_caps_are_fixed_before_a_batch_is_judged() -> None:
    """Two judges that differ in one batch only: the policy of that batch does not."""
    other = JUDGE.copy()
    session = play(config(), JUDGE, HUMAN, batches=1)
    batch = session.process.batch
    assert batch is not None
    other[batch.items] = 1.0 - other[batch.items]
    again = play(config(), other, HUMAN, batches=1).process.batch
    assert again is not None
    for name in ("items", "propensity", "bets", "uniform", "below", "above"):
        np.testing.assert_array_equal(getattr(batch, name), getattr(again, name))


def test_disjoint_coins_never_label_leader_and_rival_of_a_context_when_both_fit() -> None:
    session = play(config(n_items=400), JUDGE, HUMAN)
    by_context: dict[int, list[bool]] = {}
    for d in session.draws:
        by_context.setdefault(d.context, [])
    for d in session.draws:
        leader = next(x for x in session.draws if x.context == d.context and x.model == d.leader)
        if d is not leader and d.propensity + leader.propensity <= 1.0:
            assert not (d.wanted and leader.wanted)


def test_coins_fall_as_often_as_their_propensity_says() -> None:
    judge, human = world(500, gap=0.0, seed=5)
    session = play(config(n_items=500, labels_per_batch=60, second_pass=False), judge, human)
    thrown = [d for d in session.draws if d.coin is not Coin.NONE]
    wanted = np.array([d.wanted for d in thrown], dtype=float)
    chance = np.array([d.propensity for d in thrown])
    z = (wanted - chance).sum() / np.sqrt(
        (chance * (1 - chance)).sum() * 3
    )  # coins of a context hang together
    assert abs(z) < 4


# replay


@pytest.mark.parametrize("share", [0.3, 0.8, 1.0])
def test_replay_gives_the_same_verdict_from_settings_draws_and_labels(share: float) -> None:
    session = play(config(seed=4), JUDGE, HUMAN, shuffle=9)
    labels = labels_of(session, HUMAN)
    contexts = max(d.context for d in session.draws) * share
    draws = [d for d in session.draws if d.context <= contexts]
    kept = {d.index: labels[d.index] for d in draws if d.wanted}
    settings = AuditEProcess.of(config(seed=4).to_json()).config
    again = rebuild(begin(settings), reversed(draws), kept)
    assert {d.index: d for d in again.draws} == {d.index: d for d in draws}
    if share == 1.0:
        one, other = session.verdict(), rebuild(begin(settings), draws, labels).verdict()
        assert one == other
        assert other.outcome is AuditOutcome.BEST
        assert other.winner == 0


def test_replay_refuses_draws_of_another_seed_and_changed_labels() -> None:
    session = play(config(seed=4), JUDGE, HUMAN)
    labels = labels_of(session, HUMAN)
    with pytest.raises(ReplayError, match="another audit"):
        rebuild(begin(config(seed=5)), session.draws, labels)
    first = min(labels)
    with pytest.raises(ReplayError, match="changed after"):
        rebuild(begin(config(seed=4)), session.draws, {**labels, first: 1.0 - labels[first]})
    tampered = [replace(d, propensity=0.9) if d.index == first else d for d in session.draws]
    with pytest.raises(ReplayError):
        rebuild(begin(config(seed=4)), tampered, labels)


# bad input


def test_labels_that_no_coin_asked_for_are_refused() -> None:
    session = begin(config())
    session.judge(session.contexts[0], JUDGE[session.contexts[0].item])
    tails = next(d for d in session.draws if not d.wanted)
    with pytest.raises(InvalidInputError, match="would bias"):
        session.label(tails.index, 0.5)
    with pytest.raises(InvalidInputError, match="would bias"):
        session.label(10_000, 0.5)
    with pytest.raises(InvalidInputError, match="would bias"):
        rebuild(begin(config()), session.draws, {tails.index: 0.5})


def test_scores_outside_the_range_and_contradicting_labels_are_refused() -> None:
    session = begin(config())
    with pytest.raises(InvalidInputError, match=r"judge score 3 .* outside \[0, 1\]"):
        session.judge(session.contexts[0], np.array([0.5, 3.0, 0.5]))
    for context in session.contexts:
        session.judge(context, JUDGE[context.item])
    index = session.wanted[0]
    with pytest.raises(InvalidInputError, match="rescale labels"):
        session.label(index, 7.0)
    session.label(index, 0.25)
    session.label(index, 0.25)
    with pytest.raises(InvalidInputError, match="contradicting"):
        session.label(index, 0.75)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_models": 1}, "half-width"),
        ({"half_width": 0.1}, "single system"),
        ({"delta": 0.0}, "delta"),
        ({"label_price": 0.0}, "label everything"),
        ({"judge_price": -1.0}, "judge_price"),
        ({"margin": 1.5}, "margin"),
        ({"segments": (0, 1)}, "segments"),
        ({"labels_per_batch": 0}, "labels_per_batch"),
        ({"max_labels": 0}, "max_labels"),
        ({"max_labels": 2.5}, "max_labels"),
        ({"seed": -1}, "seed"),
    ],
)
def test_settings_that_cannot_be_used_say_why(options: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        config(**options)


def test_an_unknown_setting_gets_a_suggestion() -> None:
    with pytest.raises(InvalidInputError, match="Did you mean 'margin'"):
        AuditEProcess.of({**config().to_json(), "margn": 0.1})


def test_a_value_of_another_type_is_refused_with_the_name_of_the_policy() -> None:
    with pytest.raises(InvalidInputError, match="audit-eprocess refuses its settings"):
        AuditEProcess.of({**config().to_json(), "margin": "wide"})
    with pytest.raises(InvalidInputError, match=r"human-only refuses its settings.*n_models"):
        HumanOnly.of({})


def test_the_judge_is_asked_by_one_policy_and_not_by_the_other() -> None:
    for policy, asks in ((AuditEProcess, False), (HumanOnly, True)):
        with pytest.raises(InvalidInputError, match="human-only asks none"):
            policy(config(use_judge=asks))


# outcomes


def test_labels_never_exceed_the_most_allowed_and_what_is_known_is_told() -> None:
    judge, human = world(gap=0.02)
    session = play(config(max_labels=37), judge, human)
    verdict = session.verdict()
    assert verdict.outcome is AuditOutcome.UNDECIDED
    assert verdict.finished
    assert verdict.labels <= 37
    assert "37 labels allowed" in verdict.reason
    assert all(e.low <= e.value <= e.high for e in verdict.estimates)


def test_an_exhausted_pool_is_exact() -> None:
    judge, human = world(30, gap=0.01)
    exact = play(config(n_items=30, use_judge=False), judge, human).verdict()
    assert exact.outcome is AuditOutcome.BEST
    assert exact.winner == int(human.mean(axis=0).argmax())
    for estimate in exact.estimates:
        if estimate.labels == 30:
            assert estimate.low == estimate.high == pytest.approx(human[:, estimate.model].mean())
    equal = play(config(n_items=30, use_judge=False), judge, np.tile(human[:, :1], 3)).verdict()
    assert equal.outcome is AuditOutcome.TIE
    assert "exactly equal means on these 30 items" in equal.reason


def test_all_scores_equal_end_in_a_tie_without_a_warning() -> None:
    flat = np.full((60, 3), 0.5)
    assert play(config(n_items=60), flat, flat).verdict().outcome is AuditOutcome.TIE


def test_a_margin_names_a_system_that_is_good_enough() -> None:
    judge, human = world(gap=0.0)
    verdict = play(config(margin=0.2), judge, human).verdict()
    assert verdict.outcome is AuditOutcome.EQUIVALENT
    assert verdict.winner is not None


def test_one_system_stops_at_the_half_width_wanted() -> None:
    judge, human = world(2000, 1)
    verdict = play(AuditConfig(1, 2000, half_width=0.05), judge, human).verdict()
    (estimate,) = verdict.estimates
    assert verdict.outcome is AuditOutcome.ESTIMATED
    assert (estimate.high - estimate.low) / 2 <= 0.05
    assert estimate.low <= human.mean() <= estimate.high
    assert verdict.labels < estimate.judged, "a good judge saves labels"


def test_a_useless_judge_is_a_no_go() -> None:
    _, human = world(3000, 2, gap=0.06)
    noise = np.random.default_rng(1).random(human.shape)
    options = {"n_models": 2, "n_items": 3000, "judge_price": 10.0, "pilot": 40, "labels_per_batch": 50}
    went_on = play(config(**options), noise, human)
    assert went_on.verdict().no_go is not None
    assert not any(np.isfinite(d.judge) and d.policy > went_on.process.no_go for d in went_on.draws)  # type: ignore[operator]
    assert went_on.verdict().winner == 0


def test_labels_that_never_come_count_against_what_they_would_help() -> None:
    """All labels of the better system are missing: nothing is proved."""
    session = begin(config(n_items=60))
    while not session.over:
        batch = session.process.batch
        for context in session.contexts:
            session.judge(context, JUDGE[context.item, list(context.models)])
        drawn = {draw.index: draw for draw in session.draws}
        for index in session.wanted:
            draw = drawn[index]
            session.label(index, np.nan if draw.model == 0 else float(HUMAN[draw.item, draw.model]))
        assert session.process.batch is not batch
    verdict = session.verdict()
    assert verdict.winner != 0 or verdict.outcome is not AuditOutcome.BEST


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_estimates_stay_on_the_scale_and_inside_their_interval(value: float) -> None:
    session = play(config(n_items=100), JUDGE[:100], np.full_like(HUMAN[:100], value))
    for estimate in session.verdict().estimates:
        assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0


def test_a_limit_too_small_for_one_item_says_so() -> None:
    verdict = play(config(use_judge=False, max_labels=5), JUDGE, HUMAN).verdict()
    assert verdict.labels == 3
    assert verdict.reason.startswith("3 of the 5 labels allowed are used up")


def test_a_verdict_from_labels_of_every_item_is_about_these_items() -> None:
    judge, human = world(30, gap=0.01)
    exact = play(config(n_items=30, use_judge=False), judge, human).verdict()
    assert exact.outcome is AuditOutcome.BEST
    assert "on these 30 items" in exact.reason
    proved = play(config(), JUDGE, HUMAN).verdict()
    assert proved.reason == "better than every other system on items like these, with probability 0.95"


def test_a_useless_judge_of_a_single_system_is_a_no_go() -> None:
    _, human = world(1500, 1)
    noise = np.random.default_rng(2).random(human.shape)
    settings = AuditConfig(1, 1500, half_width=0.05, judge_price=5.0)
    found = play(settings, noise, human).verdict()
    assert found.no_go == 1
    assert found.outcome is AuditOutcome.ESTIMATED
    first = found.judged
    assert first < found.estimates[0].judged, "the judge was asked on"
    cheap = replace(settings, judge_price=1.0)
    good = play(cheap, np.clip(human + 0.05, 0.0, 1.0), human).verdict()
    assert good.no_go is None


def test_batches_grow_with_the_labels_so_far() -> None:
    grows, fixed = AuditConfig(3, 1500, delta=0.01), config(labels_per_batch=7)
    assert [grows.batch_after(labels) for labels in (0, 99, 110, 129, 500, 9000)] == [10, 10, 11, 12, 50, 50]
    assert [fixed.batch_after(labels) for labels in (0, 99, 9000)] == [7, 7, 7]
    with pytest.raises(InvalidInputError, match="labels_per_batch is 0"):
        config(labels_per_batch=0)
    judge, human = world(300, gap=0.1)
    labels = play(AuditConfig(3, 300), judge, human).verdict().labels
    waits = play(AuditConfig(3, 300, labels_per_batch=200), judge, human).verdict().labels
    assert labels < waits


def test_free_labels_are_for_labelling_everything() -> None:
    verdict = play(config(use_judge=False, label_price=0.0), JUDGE, HUMAN).verdict()
    assert (verdict.outcome, verdict.winner, verdict.cost) == (AuditOutcome.BEST, 0, 0.0)


def test_what_was_paid_after_the_decision_fell_is_still_counted_when_rebuilt() -> None:
    """Nothing but the first contexts decides; the scores of the others were bought all the same."""
    settings = config(use_judge=True, margin=0.4, delta=0.5, pilot=1)
    for seed in range(40):
        session, given = begin(replace(settings, seed=seed)), {}
        while not session.over:
            for context in reversed(session.contexts):
                session.judge(context, JUDGE[context.item, list(context.models)])
            drawn = {draw.index: draw for draw in session.draws}
            for index in reversed(session.wanted):
                given[index] = float(HUMAN[drawn[index].item, drawn[index].model])
                session.label(index, given[index])
        again = rebuild(begin(replace(settings, seed=seed)), session.draws, given)
        assert again.verdict() == session.verdict()
        assert {d.index for d in again.draws} == {d.index for d in session.draws}


def test_a_label_that_comes_late_is_paid_once_and_may_be_told_again() -> None:
    session = play(config(use_judge=False, max_labels=5), JUDGE, HUMAN)
    labelled = session.labels_received
    asked = {draw.index for draw in session.draws if draw.wanted and draw.context == 1}
    for value in (np.nan, 0.5, 0.5):
        for index in asked:
            session.label(index, value)
    assert session.labels_received == labelled + len(asked)
