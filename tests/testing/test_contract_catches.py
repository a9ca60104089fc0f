"""The shipped contract catches: samplers broken on purpose fail the test that is meant for them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from evalbudget import Design, Reading
from evalbudget.errors import EvalbudgetError
from evalbudget.races import samplers as races
from evalbudget.races.samplers import UCBE, Pulse, RacingSampler, Table, UniformRacing
from evalbudget.repeats.samplers import Auto, Note, Readings, RobinHood, Round, Uniform
from evalbudget.testing import SamplerContract


class GlobalRandom(Uniform):
    def plan(self, table: Readings, last: Note | None) -> Round:
        found = super().plan(table, last)
        random.shuffle(found.item)
        return found


class Clock(Uniform):
    def plan(self, table: Readings, last: Note | None) -> Round:
        found = super().plan(table, last)
        return found if time.time() > 1e7 else found._replace(item=found.item[::-1])


class CountsItsPlans(Uniform):
    """Keeps to itself what belongs into a note."""

    plans = 0

    def plan(self, table: Readings, last: Note | None) -> Round:
        self.plans += 1
        found = super().plan(table, last)
        return found._replace(item=np.roll(found.item, self.plans))


class CountsItsRounds(UniformRacing):
    """The same of models."""

    plans = 0

    def plan(self, table: Table, last: Any) -> Any:
        self.plans += 1
        found = super().plan(table, last)
        return found._replace(item=np.roll(found.item, self.plans)) if hasattr(found, "item") else found


class WritesToItsNote(Pulse):
    def resumed(self, table: Table, last: Any) -> Any:
        note = super().resumed(table, last)
        note.estimate[:] = 0.5
        return note


class LooksAtTheLastReading(UCBE):
    """By when it came."""

    latest = 0

    def check(self, reading: Reading) -> None:
        super().check(reading)
        self.latest = reading.request.cell.model

    def first(self, value: Any, among: Any) -> int:
        return self.latest if among[self.latest] else super().first(value, among)


class LooksAtItsOwnPhase(Auto):
    """Plans the rest of a phase with what its head brought."""

    def plan(self, table: Readings, last: Note | None) -> Any:
        return super().plan(replace(table, phase=np.maximum(table.phase - 1, 0)), last)


class NeverStops(UniformRacing):
    def plan(self, table: Table, last: Any) -> Any:
        found = super().plan(table, last)
        none = np.zeros(0, np.int64)
        return found if hasattr(found, "item") else races.Round(none, none, found.note)


class ClosesNothing(UniformRacing):
    def next_pass(self, cells: Any) -> Any:
        found = super().next_pass(cells)
        return found._replace(close=found.close[:0], ask=found.close if found.close.size else found.ask)


class TellsOthers(UniformRacing):
    """What is looked at changes what is planned."""

    def look(self, cells: Any, last: Any) -> None:
        super().look(cells, last)
        self._shared = np.roll(self._shared, 1)


class LooksAtCosts(UCBE):
    def _table_of(self, cells: Any) -> Table:
        found = super()._table_of(cells)
        return replace(found, total=np.roll(found.total, int(cells.cost.sum())))


class TakesAnything(UniformRacing):
    def check(self, reading: Reading) -> None:
        pass


OPTIONS: dict[type[Any], dict[str, Any]] = {RobinHood: {"t0": 2}, UCBE: {"batch": 1}, Pulse: {"batch": 2}}


def made(sampler: type[Any], design: Design, seed: int) -> Any:
    own = next((given for cls, given in OPTIONS.items() if issubclass(sampler, cls)), {})
    return sampler(design, seed=seed, **own)


@pytest.mark.parametrize(
    ("sampler", "test"),
    [
        (GlobalRandom, lambda c: c.test_same_seed_and_scores_give_the_same_decisions()),
        (Clock, lambda c: c.test_same_seed_and_scores_give_the_same_decisions()),
        (CountsItsPlans, lambda c: c.test_a_plan_is_a_function_of_the_cells_and_the_note(1)),
        (LooksAtItsOwnPhase, lambda c: c.test_scores_of_a_phase_decide_nothing_in_it(1)),
        (CountsItsRounds, lambda c: c.test_a_plan_is_a_function_of_the_cells_and_the_note(1)),
        (WritesToItsNote, lambda c: c.test_a_plan_is_a_function_of_the_cells_and_the_note(1)),
        (
            LooksAtTheLastReading,
            lambda c: c.test_who_answers_first_changes_no_plan_where_all_are_waited_for(),
        ),
        (TellsOthers, lambda c: c.test_who_looks_changes_nothing()),
        (ClosesNothing, lambda c: c.test_a_cell_that_always_fails_closes_and_is_reported()),
        (NeverStops, lambda c: c.test_when_everything_fails_it_stops_with_a_reason(1)),
        (TakesAnything, lambda c: c.test_scores_outside_the_range_are_refused()),
        (LooksAtCosts, lambda c: c.test_costs_change_no_decision_unless_they_are_weighed_and_differ()),
    ],
)
def test_broken_samplers_fail(sampler: type[Any], test: Callable[[SamplerContract], None]) -> None:
    class Contract(SamplerContract):
        n_models = 3 if issubclass(sampler, RacingSampler) else 1
        n_items = 20 if issubclass(sampler, RacingSampler) else 6
        score_range = (0.0, 1.0) if issubclass(sampler, RacingSampler) else None
        asks_everything = True

        def make(self, design: Design, seed: int) -> Any:
            return made(sampler, design, seed)

    with pytest.raises((AssertionError, EvalbudgetError, KeyError, pytest.fail.Exception)):
        test(Contract())
