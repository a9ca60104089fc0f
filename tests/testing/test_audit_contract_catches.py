"""The shipped contract catches: audit policies broken on purpose fail the test that is meant for them."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from evalbudget.audits._draw import AuditDraw
from evalbudget.audits.policies import AuditOutcome, BatchPolicy, Context, PolicyConfig, Verdict
from evalbudget.errors import EvalbudgetError
from evalbudget.statistics._bounds import FloatArray
from evalbudget.testing import AuditPolicyContract


class Sound(BatchPolicy):
    """Ten items at a time, a coin for each answer, and never a verdict."""

    name = "sound"

    def __init__(self, config: PolicyConfig) -> None:
        super().__init__(config)
        self.drawn = 0

    def _next(self) -> Sequence[tuple[int, Sequence[int]]]:
        n, most = self.config.n_models, self.config.max_labels
        room = 10 if most is None else min(10, (most - self.labels_asked) // n)
        items = range(self.drawn, min(self.drawn + room, self.config.n_items))
        self.drawn += len(items)
        return [(item, range(n)) for item in items]

    def _propensity(self, model: int, item: int, judge: float) -> float:
        return 0.5

    def _learn(self, draws: Sequence[AuditDraw], labels: Mapping[int, float]) -> None:
        pass

    def verdict(self) -> Verdict:
        """Never any."""
        n = self.config.n_models
        estimates = self._estimates([0.5] * n, [0.0] * n, [1.0] * n)
        return self._verdict(AuditOutcome.UNDECIDED, "for the test", estimates, "none")


class GlobalRandom(Sound):
    def _propensity(self, model: int, item: int, judge: float) -> float:
        return 0.2 + 0.6 * random.random()


class GoesByTheOrder(Sound):
    calls = 0

    def _propensity(self, model: int, item: int, judge: float) -> float:
        self.calls += 1
        return 0.2 if self.calls % 7 else 0.9


class Forgets(Sound):
    """What it learned is not what a store says."""

    last = 0.5

    def label(self, index: int, value: float) -> None:
        """Takes it in at once."""
        super().label(index, value)
        self.last = 0.3 + 0.4 * value

    def _propensity(self, model: int, item: int, judge: float) -> float:
        return self.last


class LooksChangeIt(Sound):
    looks = 0

    def _propensity(self, model: int, item: int, judge: float) -> float:
        return 0.9 if self.looks else 0.1

    def verdict(self) -> Verdict:
        """And remembers that somebody looked."""
        self.looks += 1
        return super().verdict()


class LoadedCoins(Sound):
    def judge(self, context: Context, scores: FloatArray) -> tuple[AuditDraw, ...]:
        """Records a smaller chance than was thrown with."""
        draws = super().judge(context, scores)
        for draw in draws:
            lied = replace(draw, propensity=0.3)
            self.draws[self.draws.index(draw)] = lied
        return draws


class NoLimit(Sound):
    def _next(self) -> Sequence[tuple[int, Sequence[int]]]:
        self.config = replace(self.config, max_labels=None)
        return super()._next()


class TakesAnyLabel(Sound):
    def _is_new(self, index: int, value: float, *, wanted: bool, before: float | None) -> bool:
        return wanted and before is None


class TakesAnyScore(Sound):
    def _check_scores(self, context: Context, scores: FloatArray) -> None:
        pass


class FollowsTheJudge(Sound):
    def verdict(self) -> Verdict:
        """The judge's favourite."""
        found = super().verdict()
        return replace(found, outcome=AuditOutcome.BEST, winner=found.judge_verdict or 0)


@dataclass(frozen=True)
class WithASet(PolicyConfig):
    chosen: frozenset[int] = frozenset({1})


class KeepsNoJSON(Sound):
    config_type = WithASet


class NumbersTwice(Sound):
    def _open(self) -> tuple[Context, ...]:
        return tuple(replace(context, number=context.number % 10) for context in super()._open())


CATCHES: list[tuple[type[Sound], Callable[[AuditPolicyContract], None]]] = [
    (
        GlobalRandom,
        lambda c: c.test_neither_global_random_state_nor_clock_is_used(),
    ),
    (GlobalRandom, lambda c: c.test_the_same_answers_give_the_same_draws_and_verdict()),
    (GoesByTheOrder, lambda c: c.test_the_order_in_which_scores_and_labels_come_changes_nothing(1)),
    (Forgets, lambda c: c.test_rebuilt_from_its_draws_and_labels_it_goes_on_the_same(1)),
    (LooksChangeIt, lambda c: c.test_asking_for_the_verdict_changes_nothing()),
    (LoadedCoins, lambda c: c.test_coins_fall_as_often_as_their_chances_say()),
    (NoLimit, lambda c: c.test_the_most_labels_allowed_are_never_exceeded(5)),
    (TakesAnyLabel, lambda c: c.test_labels_that_no_coin_asked_for_or_outside_the_scale_are_refused()),
    (TakesAnyScore, lambda c: c.test_judge_scores_outside_the_scale_are_refused_and_change_nothing()),
    (FollowsTheJudge, lambda c: c.test_a_judge_that_is_wrong_makes_no_wrong_winner()),
    (FollowsTheJudge, lambda c: c.test_without_any_label_nothing_is_proved()),
    (FollowsTheJudge, lambda c: c.test_equal_scores_and_labels_name_no_winner(0.5)),
    (KeepsNoJSON, lambda c: c.test_its_name_and_settings_survive_a_store()),
    (NumbersTwice, lambda c: c.test_draws_are_of_their_context_numbered_once_and_by_chances()),
]


class TestSound(AuditPolicyContract):
    policy = Sound


@pytest.mark.parametrize(
    ("broken", "test"), CATCHES, ids=[f"{cls.__name__}-{n}" for n, (cls, _) in enumerate(CATCHES)]
)
def test_broken_policies_fail(broken: type[Any], test: Callable[[AuditPolicyContract], None]) -> None:
    class Contract(AuditPolicyContract):
        policy = broken

    with pytest.raises((AssertionError, EvalbudgetError, TypeError, pytest.fail.Exception)):
        test(Contract())
