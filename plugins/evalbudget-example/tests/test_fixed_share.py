from typing import Any, ClassVar

import numpy as np

from evalbudget.testing import AuditPolicyContract
from evalbudget_example.fixed_share import FixedShare


class TestFixedShare(AuditPolicyContract):
    """The contract of every audit policy: replays, orders of arrival, coins, failures, limits."""

    policy = FixedShare
    options: ClassVar[dict[str, Any]] = {"share": 0.5}


def test_few_labels_prove_nothing_whatever_the_judge_says() -> None:
    policy = FixedShare.of({"n_models": 2, "n_items": 200, "share": 0.05})
    for context in policy.contexts:
        policy.judge(context, np.array([0.9, 0.1]))
    for index in policy.wanted:
        policy.label(index, 0.5)
    verdict = policy.verdict()
    assert verdict.finished
    assert verdict.winner is None
    assert "too few for normal intervals" in verdict.reason


def test_intervals_hold_the_means_about_as_often_as_they_say() -> None:
    missed = wrong = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        label = (rng.random((150, 2)) < 0.6).astype(float)
        judge = np.clip(label + rng.normal(0.2, 0.3, label.shape), 0.0, 1.0)
        policy = FixedShare.of({"n_models": 2, "n_items": 150, "delta": 0.2, "seed": seed})
        for context in policy.contexts:
            policy.judge(context, judge[context.item])
        drawn = {draw.index: draw for draw in policy.draws}
        for index in policy.wanted:
            policy.label(index, float(label[drawn[index].item, drawn[index].model]))
        verdict = policy.verdict()
        missed += any(not each.low <= 0.6 <= each.high for each in verdict.estimates)
        wrong += verdict.winner is not None
    assert 0 < missed <= 24, "a normal interval is not exact, but not far off either"
    assert wrong <= 16
