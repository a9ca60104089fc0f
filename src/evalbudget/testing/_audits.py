"""The contract of an audit policy, as tests to inherit."""
# the names of the tests say what they test

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pytest

from evalbudget.audits._draw import AuditDraw, Coin
from evalbudget.audits.policies import AuditOutcome, AuditPolicy, Context, rebuild
from evalbudget.errors import InvalidInputError
from evalbudget.testing._play import T, in_other_worlds

Scores = Callable[[int, int], float]
"""What a judge or a human says of a system's answer to an item; nan for nothing."""
_MOST_BATCHES = 100_000


@lru_cache(maxsize=100_000)
def _noise(name: str) -> float:
    """A standard normal number, always the same one for this name."""
    return random.Random(name).gauss(0.0, 1.0)


class AuditPolicyContract:
    """What every audit policy must do; inherit in a class named ``Test...`` and set :attr:`policy`.

    Attributes:
        policy: the class.
        options: settings to test with.
        n_models: of the audit; the first system is the best, the others follow.
        n_items: of the audit.
    """

    policy: ClassVar[type[AuditPolicy]]
    options: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    n_models: ClassVar[int] = 3
    n_items: ClassVar[int] = 60

    def make(self, seed: int = 0, **more: Any) -> AuditPolicy:
        """A fresh policy."""
        sizes = {"n_models": self.n_models, "n_items": self.n_items}
        return self.policy.of({**self.options, **sizes, "seed": seed, **more})

    def label(self, model: int, item: int) -> float:
        """What a human says."""
        return min(1.0, max(0.0, 0.8 - 0.25 * model + 0.15 * _noise(f"label {model}/{item}")))

    def score(self, model: int, item: int) -> float:
        """What the judge says: about that."""
        noise = 0.05 + 0.1 * _noise(f"score {model}/{item}")
        return min(1.0, max(0.0, self.label(model, item) + noise))

    def play(
        self,
        policy: AuditPolicy,
        *,
        score: Scores | None = None,
        label: Scores | None = None,
        order: random.Random | None = None,
        batches: int = _MOST_BATCHES,
    ) -> dict[int, float]:
        """Judge and label until it is over, or for some batches.

        Returns:
            The labels given, by index of the draw.
        """
        given: dict[int, float] = {}
        for _ in range(batches):
            if policy.over:
                break
            before = len(policy.draws), len(given)
            for context in _in_order((c for c in policy.contexts if c.judged), order):
                policy.judge(context, self.scores(context, score))
            drawn = {draw.index: draw for draw in policy.draws}
            for index in _in_order(policy.wanted, order):
                given[index] = (label or self.label)(drawn[index].model, drawn[index].item)
                policy.label(index, given[index])
            assert before != (len(policy.draws), len(given)), "nothing is wanted, and it is not over"
        return given

    def scores(self, context: Context, score: Scores | None = None) -> np.ndarray[Any, np.dtype[np.float64]]:
        """The judge's scores of a context."""
        return np.array([(score or self.score)(model, context.item) for model in context.models])

    # what it says of itself

    def test_its_name_and_settings_survive_a_store(self) -> None:
        policy = self.make(seed=3)
        assert isinstance(policy.name, str)
        assert policy.name
        kept = json.loads(json.dumps(policy.config.to_json(), allow_nan=False))
        assert self.policy.of(kept).config == policy.config
        assert policy.config.seed == 3

    def test_a_setting_that_does_not_exist_is_refused(self) -> None:
        with pytest.raises(InvalidInputError, match="no setting 'tpyo'"):
            self.make(tpyo=1)

    # deterministic

    def test_the_same_answers_give_the_same_draws_and_verdict(self) -> None:
        runs = [self.make(seed=5) for _ in range(2)]
        for policy in runs:
            self.play(policy)
        assert _told(runs[0]) == _told(runs[1])

    def test_neither_global_random_state_nor_clock_is_used(self) -> None:
        def played() -> tuple[list[str], str]:
            policy = self.make()
            self.play(policy)
            return _told(policy)

        told = in_other_worlds(played)
        assert told[0] == told[1]

    @pytest.mark.parametrize("seed", range(2))
    def test_the_order_in_which_scores_and_labels_come_changes_nothing(self, seed: int) -> None:
        straight, shuffled = self.make(seed), self.make(seed)
        self.play(straight)
        self.play(shuffled, order=random.Random(seed))
        assert _told(straight) == _told(shuffled)

    def test_asking_for_the_verdict_changes_nothing(self) -> None:
        asked, left = self.make(), self.make()
        for _ in range(_MOST_BATCHES):
            if asked.over:
                break
            asked.verdict()
            self.play(asked, batches=1)
        self.play(left)
        assert _told(asked) == _told(left)

    # replays

    @pytest.mark.parametrize("seed", range(2))
    def test_rebuilt_from_its_draws_and_labels_it_goes_on_the_same(self, seed: int) -> None:
        """Killed between any two answers of any batch."""
        whole = self.make(seed)
        labels = self.play(whole)
        rng = random.Random(seed)
        for _ in range(2):
            stopped = self.make(seed)
            self.play(stopped, batches=rng.randrange(1 + max(d.policy for d in whole.draws)))
            for context in _in_order((c for c in stopped.contexts if c.judged), rng):
                if rng.random() < 0.6:
                    stopped.judge(context, self.scores(context))
            some = {i: labels[i] for i in (d.index for d in stopped.draws) if i in labels}
            wanted = set(stopped.wanted)
            some = {i: value for i, value in some.items() if i not in wanted or rng.random() < 0.6}
            draws = list(stopped.draws)
            rng.shuffle(draws)
            again = rebuild(self.make(seed), draws, some)
            made = {draw.index: draw for draw in again.draws}
            assert all(repr(made[draw.index]) == repr(draw) for draw in draws)
            self.play(again)
            outcomes = [(p.verdict().outcome, p.verdict().winner) for p in (again, whole)]
            assert outcomes[0] == outcomes[1]
            by_index = {draw.index: repr(draw) for draw in whole.draws}
            assert {d.index: repr(d) for d in again.draws}.items() <= by_index.items()

    # draws

    def test_draws_are_of_their_context_numbered_once_and_by_chances(self) -> None:
        policy = self.make()
        last = -1
        while not policy.over:
            contexts = policy.contexts
            numbers = [context.number for context in contexts]
            assert numbers == sorted(set(numbers))
            assert numbers[0] > last, "numbers go on from batch to batch"
            last = numbers[-1]
            for context in contexts:
                assert 0 <= context.item < self.n_items
                assert all(0 <= model < self.n_models for model in context.models)
                for draw in policy.judge(context, self.scores(context)) if context.judged else ():
                    assert (draw.context, draw.item) == (context.number, context.item)
                    assert draw.model in context.models
            if policy.contexts[:1] == contexts[:1]:
                self.play(policy, batches=1)
        indices = [draw.index for draw in policy.draws]
        assert len(set(indices)) == len(indices)
        assert all(0.0 < draw.propensity <= 1.0 for draw in policy.draws)
        assert all(0.0 <= draw.prediction <= 1.0 for draw in policy.draws)

    def test_coins_fall_as_often_as_their_chances_say(self) -> None:
        thrown: list[AuditDraw] = []
        for seed in range(8):
            policy = self.make(seed)
            self.play(policy)
            thrown += [draw for draw in policy.draws if draw.coin is not Coin.NONE]
        chance = np.array([draw.propensity for draw in thrown])
        # coins of one context may hang together
        spread = math.sqrt(self.n_models * float((chance * (1.0 - chance)).sum()))
        assert abs(sum(draw.wanted for draw in thrown) - float(chance.sum())) <= 4.0 * spread + 1e-9

    def test_a_context_is_judged_once(self) -> None:
        policy = self.make()
        context = policy.contexts[0]
        draws = policy.judge(context, self.scores(context))
        assert [draw.model for draw in draws] == list(context.models if context.judged else ())
        assert policy.judge(context, self.scores(context)) == ()

    # bad input

    def test_judge_scores_outside_the_scale_are_refused_and_change_nothing(self) -> None:
        policy = self.make()
        context = policy.contexts[0]
        for outside in (-0.1, 1.5):
            scores = np.full(len(context.models), outside)
            if not context.judged:
                assert policy.judge(context, scores) == ()
                continue
            with pytest.raises(InvalidInputError, match="judge score"):
                policy.judge(context, scores)
        fresh = self.make()
        self.play(policy)
        self.play(fresh)
        assert _told(policy) == _told(fresh)

    def test_labels_that_no_coin_asked_for_or_outside_the_scale_are_refused(self) -> None:
        policy = self.make()
        while not policy.over and not policy.wanted:
            for context in policy.contexts:
                if context.judged and not policy.wanted:
                    policy.judge(context, self.scores(context))
        with pytest.raises(InvalidInputError, match="would bias"):
            policy.label(10**9, 0.5)
        for draw in policy.draws:
            if not draw.wanted:
                with pytest.raises(InvalidInputError, match="would bias"):
                    policy.label(draw.index, 0.5)
        with pytest.raises(InvalidInputError, match="rescale labels"):
            policy.label(policy.wanted[0], 7.0)

    def test_a_label_told_again_later_changes_nothing(self) -> None:
        policy = self.make()
        given: dict[int, float] = {}
        for _ in range(3):
            given |= self.play(policy, batches=1)
            told = _told(policy)
            for index, value in given.items():
                policy.label(index, value)
            assert _told(policy) == told

    # how it ends

    @pytest.mark.parametrize("most", [1, 5, 17])
    def test_the_most_labels_allowed_are_never_exceeded(self, most: int) -> None:
        for seed in range(3):
            policy = self.make(seed, max_labels=most)
            given = self.play(policy)
            assert len(given) <= most
            assert policy.verdict().labels <= most
            assert policy.verdict().finished

    def test_it_ends_with_a_verdict_and_says_what_was_paid(self) -> None:
        policy = self.make(judge_price=2.0, label_price=30.0)
        assert not policy.verdict().finished
        labels = self.play(policy)
        verdict = policy.verdict()
        assert verdict.finished
        assert not policy.contexts
        assert policy.wanted == verdict.labels_wanted == ()
        assert verdict.reason
        assert verdict.intervals
        assert verdict.labels == len(labels)
        assert verdict.cost == 2.0 * verdict.judged + 30.0 * verdict.labels
        assert len(verdict.estimates) == self.n_models
        assert all(0.0 <= each.low <= each.high <= 1.0 for each in verdict.estimates)
        assert (verdict.winner is not None) == (
            verdict.outcome in (AuditOutcome.BEST, AuditOutcome.EQUIVALENT)
        )
        json.dumps(verdict.to_json())

    def test_a_judge_that_is_wrong_makes_no_wrong_winner(self) -> None:
        for seed in range(3):
            policy = self.make(seed)
            self.play(policy, score=lambda model, item: 0.2 + 0.3 * model)
            assert policy.verdict().winner in (0, None)

    def test_without_any_label_nothing_is_proved(self) -> None:
        policy = self.make()
        self.play(policy, label=lambda model, item: math.nan)
        verdict = policy.verdict()
        assert verdict.finished
        assert verdict.winner is None
        assert verdict.labels == 0

    def test_a_judge_that_always_fails_is_survived(self) -> None:
        policy = self.make()
        self.play(policy, score=lambda model, item: math.nan)
        verdict = policy.verdict()
        assert verdict.finished
        assert verdict.judged == 0
        assert verdict.winner in (0, None)

    @pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
    def test_equal_scores_and_labels_name_no_winner(self, value: float) -> None:
        policy = self.make()
        self.play(policy, score=lambda model, item: value, label=lambda model, item: value)
        assert policy.verdict().outcome is not AuditOutcome.BEST

    def test_one_item(self) -> None:
        policy = self.make(n_items=1)
        self.play(policy)
        assert policy.verdict().finished


def _in_order(things: Iterable[T], order: random.Random | None) -> list[T]:
    found = list(things)
    if order is not None:
        order.shuffle(found)
    return found


def _told(policy: AuditPolicy) -> tuple[list[str], str]:
    """Draws and verdict as text, in which nan equals nan."""
    return sorted(map(repr, policy.draws)), repr(policy.verdict())
