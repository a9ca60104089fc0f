"""PP-LUCB where the paper says nothing: labels that never come, scores that fail, bad settings."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from tests.audits.policies.play import Floats, world
from tests.claims import replications

from evalbudget.audits.policies import AuditOutcome
from evalbudget.audits.policies.lucb import Allocator, Errata, LucbState
from evalbudget.audits.policies.lucb_session import LucbSession
from evalbudget.errors import InvalidInputError

JUDGE, HUMAN = world(200)


def play(session: LucbSession, judge: Floats, human: Floats) -> LucbSession:
    while not session.over:
        drawn = [
            draw
            for position, context in enumerate(session.contexts)
            for draw in session.judge(position, judge[context.item, list(context.models)])
        ]
        for draw in drawn:
            if draw.wanted:
                session.label(draw.index, float(human[draw.item, draw.model]))
    return session


@pytest.mark.parametrize("errata", list(Errata))
def test_an_interval_with_a_missing_label_holds_whatever_the_label_is(errata: Errata) -> None:
    rng = np.random.default_rng(3)
    f, y = rng.random((2, 60))
    asked = rng.random(60) < 0.5
    at = np.flatnonzero(asked)[:5]

    def interval(missing: float) -> tuple[float, float]:
        state = LucbState(2, rho=0.5, errata=errata)
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
    trials, wins = replications(10, 60), 0
    for seed in range(trials):
        rng = np.random.default_rng((seed, 11))
        human = (rng.random((2500, 2)) < 0.5).astype(float)
        judge = np.where((human == 0.0) & (np.arange(2) == 0), np.nan, 1.0)
        labels = np.where((human == 0.0) & (np.arange(2) == 0), np.nan, human)
        for given, shown in ((labels, np.ones_like(judge)), (human, judge)):
            session = LucbSession(LucbState(2, rho=1.0, delta=0.2), 2, 2500, seed=seed)
            wins += play(session, shown, given).verdict().outcome is AuditOutcome.BEST
    assert wins == 0


def test_a_score_that_failed_is_the_middle_of_the_scale_and_may_be_audited() -> None:
    session = play(
        LucbSession(LucbState(3, rho=0.5), 3, 200, max_labels=60), np.full_like(JUDGE, np.nan), HUMAN
    )
    verdict = session.verdict()
    assert verdict.judged == 0
    assert verdict.labels > 50
    assert verdict.judge_verdict is None
    assert verdict.leader == 0


def test_labels_that_never_came_count_against_the_limit() -> None:
    session = play(
        LucbSession(LucbState(3, rho=0.5), 3, 200, max_labels=20), JUDGE, np.full_like(HUMAN, np.nan)
    )
    assert sum(draw.wanted for draw in session.draws) <= 20
    assert "of the 20 labels allowed" in session.verdict().reason


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_arms": 1}, "audit-eprocess"),
        ({"prices": (-1.0, 20.0)}, "judge's score is -1"),
        ({"prices": (1.0, math.inf)}, "label is inf"),
        ({"prices": (1.0, 0.0), "allocator": Allocator.PRICE_OF_PRECISION}, "whose price is 0"),
    ],
)
def test_settings_that_cannot_be_used_say_why(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        LucbState(**{"n_arms": 2, **options})


@pytest.mark.parametrize("name", ["pulls", "max_labels"])
def test_at_least_one_pull_and_label(name: str) -> None:
    with pytest.raises(InvalidInputError, match=f"{name} is 0"):
        LucbSession(LucbState(2), 2, 10, **{name: 0})  # type: ignore[arg-type]
