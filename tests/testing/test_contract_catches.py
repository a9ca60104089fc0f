"""The shipped contract catches: samplers broken on purpose fail the test that is meant for them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evalbudget import Allocation, Cell, Design
from evalbudget.errors import EvalbudgetError
from evalbudget.repeats.phases._plan import Readings
from evalbudget.repeats.samplers import Auto, RobinHood, Uniform
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


class LooksAtItsOwnPhase(Auto):
    """Plans the rest of a phase with what its head brought."""

    def _readings(self) -> Readings:
        found = super()._readings()
        return replace(found, phase=np.maximum(found.phase - 1, 0))


class PhasesWithoutSaying(Auto):
    allocation = Allocation.ADAPTIVE


class SaysPhasesAndHasNone(Uniform):
    allocation = Allocation.PHASED


class ForgetsPhases(Auto):
    """An adopted cell gets another phase than the one that was recorded."""

    def assume_phase(self, cell: Cell, phase: int) -> None:
        super().assume_phase(cell, phase + 1)


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
        (LooksAtItsOwnPhase, lambda c: c.test_scores_of_a_phase_decide_nothing_in_it(1)),
        (PhasesWithoutSaying, SamplerContract.test_a_phase_is_given_where_counts_depend_on_phases),
        (SaysPhasesAndHasNone, SamplerContract.test_a_phase_is_given_where_counts_depend_on_phases),
        (ForgetsPhases, lambda c: c.test_resumed_after_eligible_and_adopted_requests()),
    ],
)
def test_broken_samplers_fail(sampler: type[Any], test: Callable[[SamplerContract], None]) -> None:
    class Contract(SamplerContract):
        def make(self, design: Design, seed: int) -> Any:
            return sampler(design, seed=seed, **({"t0": 2} if issubclass(sampler, RobinHood) else {}))

    with pytest.raises((AssertionError, EvalbudgetError)):
        test(Contract())
