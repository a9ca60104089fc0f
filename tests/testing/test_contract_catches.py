"""The shipped contract catches: samplers broken on purpose fail the test that is meant for them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from evalbudget import Allocation, Cell, Design
from evalbudget.errors import EvalbudgetError
from evalbudget.repeats.samplers import EBBernstein, RobinHood, Uniform
from evalbudget.sampler import Eligible
from evalbudget.testing import SamplerContract


class LearnsInOrder(RobinHood):
    """The last reading counts most."""

    last = 0.0

    def _learn(self, cell: Cell, value: float) -> None:
        self.last = value
        super()._learn(cell, value)

    def _urgency(self, arm: int) -> float:
        return random.Random(f"{self.last} {arm}").random()


class GlobalRandom(Uniform):
    def _urgency(self, arm: int) -> float:
        return random.random()


class Clock(Uniform):
    def _urgency(self, arm: int) -> float:
        return float(arm if time.time() > 1e7 else -arm)


class AsksTwice(Uniform):
    def _next(self, eligible: Eligible | None) -> Cell | None:
        cell = super()._next(eligible)
        return cell and cell._replace(epoch=0)


class IgnoresEligible(Uniform):
    def _next(self, eligible: Eligible | None) -> Cell | None:
        return super()._next(None)


class NeverCloses(Uniform):
    def _set_open(self, cell: Cell, is_open: bool) -> None:
        pass


class ForgetsFailures(Uniform):
    def _failed(self, cell: Cell) -> None:
        pass

    def _next(self, eligible: Eligible | None) -> Cell | None:
        failed = any(failures.fails for failures in self._failures.values())
        return None if failed and not self._pending else super()._next(eligible)


class Weighted(EBBernstein):
    """Broken in one place each, below."""

    def __init__(self, design: Design, *, seed: int) -> None:
        super().__init__(design, seed=seed)


class WeighsTooMuch(Weighted):
    def _weight(self, cell: Cell) -> float | None:
        weight = super()._weight(cell)
        return None if weight is None else 0.4


class HoldsOutTwice(Weighted):
    def _weight(self, cell: Cell) -> float | None:
        weight = super()._weight(cell)
        return None if cell.epoch == 7 else weight


class LooksAtWhatIsHeldOut(Weighted):
    def holds_out(self, cell: Cell) -> bool:
        return False


class WeighsByWhatCameBack(Weighted):
    """Weights that depend on the order of completion."""

    last = 0.5

    def _learn(self, cell: Cell, value: float) -> None:
        super()._learn(cell, value)
        self.last = 0.01 if value < 0.0 else 0.005

    def _weight(self, cell: Cell) -> float | None:
        weight = super()._weight(cell)
        return None if weight is None else weight * self.last


class ForgetsWeights(Weighted):
    """An adopted cell gets another weight than the one that was recorded."""

    def assume_weight(self, cell: Cell, weight: float | None) -> None:
        if weight is not None:
            super().assume_weight(cell, weight / 2)


class WeighsWithoutSaying(Weighted):
    allocation = Allocation.ADAPTIVE

    def __init__(self, design: Design, *, seed: int) -> None:
        super().__init__(design, seed=seed)
        self.allocation = Allocation.ADAPTIVE


@pytest.mark.parametrize(
    ("sampler", "test"),
    [
        (LearnsInOrder, lambda c: c.test_order_of_completion_does_not_change_what_is_learned(1)),
        (GlobalRandom, lambda c: c.test_neither_global_random_state_nor_clock_is_used()),
        (GlobalRandom, lambda c: c.test_same_seed_and_calls_give_same_decisions(1)),
        (Clock, lambda c: c.test_neither_global_random_state_nor_clock_is_used()),
        (AsksTwice, lambda c: c.test_requests_are_in_the_design_numbered_and_never_twice(0)),
        (IgnoresEligible, lambda c: c.test_eligible_is_honoured(0.3)),
        (NeverCloses, lambda c: c.test_a_cell_that_always_fails_closes_and_is_reported()),
        (NeverCloses, lambda c: c.test_when_everything_fails_it_stops_with_a_reason(1)),
        (ForgetsFailures, lambda c: c.test_a_failure_is_asked_again()),
        (WeighsTooMuch, lambda c: c.test_weights_of_an_item_leave_something_to_one_held_out_reading(0)),
        (HoldsOutTwice, lambda c: c.test_weights_of_an_item_leave_something_to_one_held_out_reading(0)),
        (WeighsWithoutSaying, lambda c: c.test_weights_of_an_item_leave_something_to_one_held_out_reading(0)),
        (LooksAtWhatIsHeldOut, lambda c: c.test_held_out_scores_change_no_decision()),
        (WeighsByWhatCameBack, lambda c: c.test_order_of_completion_does_not_change_what_is_learned(1)),
        (ForgetsWeights, lambda c: c.test_resumed_after_eligible_and_adopted_requests()),
    ],
)
def test_broken_samplers_fail(sampler: type[Any], test: Callable[[SamplerContract], None]) -> None:
    class Contract(SamplerContract):
        def make(self, design: Design, seed: int) -> Any:
            return sampler(design, seed=seed, **({"t0": 2} if issubclass(sampler, RobinHood) else {}))

    with pytest.raises((AssertionError, EvalbudgetError)):
        test(Contract())
