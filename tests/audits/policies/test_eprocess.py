"""What a frozen batch says of who leads, and which way on is taken."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from tests.audits.policies.play import config, play, world

from evalbudget.audits._draw import Coin
from evalbudget.audits.policies import AuditConfig
from evalbudget.audits.policies._eprocess_state import EProcess
from evalbudget.audits.policies._label_rates import LEAST


def labelled(human: np.ndarray, **options: Any) -> EProcess:
    """After one batch in which everything is labelled."""
    n, systems = human.shape
    policy = EProcess(AuditConfig(systems, n, use_judge=False, pilot=systems * 12, **options))
    batch = policy.batch
    assert batch is not None
    drawn = policy.throw(np.full((len(batch.items), systems), np.nan))
    policy.learn(drawn, human[np.ix_(batch.items, batch.arms)])
    return policy


def test_the_rival_of_all_is_the_leader_and_that_of_the_leader_the_runner_up() -> None:
    rng = np.random.default_rng(0)
    for means in ((0.5, 0.6, 0.4, 0.58), (0.6, 0.4, 0.58, 0.5), (0.4, 0.42, 0.6, 0.59)):
        human = np.array(means) + 0.02 * rng.standard_normal((200, 4))
        batch = labelled(human).batch
        assert batch is not None
        first, second = np.argsort(means)[::-1][:2]
        assert batch.leader == first
        expected = np.full(4, first)
        expected[first] = second
        np.testing.assert_array_equal(batch.rival, expected)


def test_the_rest_of_a_pool_that_is_too_small_is_drawn_at_once() -> None:
    rng = np.random.default_rng(1)
    close = (rng.random((40, 24)) < 0.6 - 0.01 * np.arange(24)).astype(float)
    far = (rng.random((40, 3)) < [1.0, 0.4, 0.1]).astype(float)
    for human, at_once in ((close, True), (far, False)):
        judge = np.where(rng.random(human.shape) < 0.8, human, 1.0 - human)
        settings = AuditConfig(human.shape[1], 40, pilot=30, labels_per_batch=30, judge_price=0.2)
        first = [d for d in play(settings, judge, human).draws if d.coin is not Coin.NONE]
        skipped = [d for d in first if d.propensity == LEAST]
        assert bool(skipped) == at_once
        if at_once:
            (last,) = {d.policy for d in skipped}
            assert {d.item for d in first} == set(range(40)), "every item is drawn"
            assert last == max(d.policy for d in first)
            for change in ({"second_pass": False}, {"max_labels": 700}):
                other = play(replace(settings, **change), judge, human)  # type: ignore[arg-type]
                assert not any(d.propensity == LEAST for d in other.draws)


def test_items_of_a_large_pool_are_not_all_judged_on_an_early_guess() -> None:
    judge, human = world(3000, 3, gap=0.01, seed=2)
    session = play(config(n_items=3000, labels_per_batch=50), judge, human, batches=4)
    assert not any(d.propensity == LEAST for d in session.draws)
