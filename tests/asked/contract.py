"""The contract of a sampler that is asked one request at a time, as tests to inherit."""

from __future__ import annotations

import json
import math
import pickle
import random
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from tests.asked.playing import play

from evalbudget._asked import AskedSampler
from evalbudget.design import Cell, Design, Reading, Request
from evalbudget.errors import InvalidInputError, JournalError, SamplerError
from evalbudget.journal import Event, Journal, resume
from evalbudget.repeats.samplers import RepeatSampler
from evalbudget.sampler import Allocation
from evalbudget.testing._contract import SCORES, MadeUpScores, _same
from evalbudget.testing._play import Score, in_other_worlds

_MOST_TRIES = 24
"""Of an item that always fails, whatever the others do."""


class AskedContract(MadeUpScores):
    """What it must do; inherit in a class named ``Test...`` and write :meth:`make`."""

    def make(self, design: Design, seed: int) -> AskedSampler:
        """A fresh sampler; the same for the same arguments."""
        raise NotImplementedError("write make(self, design, seed) in your test class")

    def fresh(self, *, played: int = 0, seed: int = 0) -> AskedSampler:
        """A sampler that has played ``played`` requests."""
        sampler = self.make(self.design(), seed)
        self.play(sampler, played)
        return sampler

    def play(
        self, sampler: AskedSampler, n_requests: int, *, score: Score | None = None, **options: Any
    ) -> Journal:
        """As :func:`~tests.asked.playing.play`, with scores that the sampler takes."""
        return play(sampler, n_requests, score=score or self.score, **options)

    # what it says of itself

    def test_has_a_name_an_allocation_and_a_config_for_journals(self) -> None:
        sampler = self.fresh()
        assert isinstance(sampler.name, str)
        assert sampler.name
        assert isinstance(sampler.allocation, Allocation)
        assert json.loads(json.dumps(sampler.config))["sampler"] == sampler.name
        assert sampler.config["seed"] == 0
        assert self.fresh(seed=1).config["seed"] == 1, "make() must hand the seed on"

    # deterministic

    def test_same_seed_and_calls_give_same_decisions(self) -> None:
        runs = [
            self.play(self.fresh(seed=5), self.n_requests, concurrency=7, order=random.Random(1))
            for _ in range(2)
        ]
        assert runs[0].events == runs[1].events

    @pytest.mark.parametrize("played", [0, 0.3, 0.8])
    def test_asking_8_equals_asking_1_eight_times(self, played: float) -> None:
        n = int(played * self.n_requests)
        together, single = self.fresh(played=n), self.fresh(played=n)
        assert together.ask(8) == tuple(request for _ in range(8) for request in single.ask(1))
        assert together.pending == single.pending

    @pytest.mark.parametrize("seed", range(2))
    def test_order_of_completion_does_not_change_what_is_learned(self, seed: int) -> None:
        rng = random.Random(seed)
        straight, shuffled = self.fresh(), self.fresh()
        left: list[Request] = []
        while straight.asked < self.n_requests:
            asked = straight.ask(rng.randrange(1, 12))
            assert shuffled.ask(len(asked) or 1) == asked
            left += asked
            if not left:
                assert straight.stop_reason == shuffled.stop_reason
                break
            rng.shuffle(left)
            told = [
                Reading(request, self.score_or_failure(request.cell)) for request in left[len(left) // 3 :]
            ]
            del left[len(left) // 3 :]
            straight.tell(sorted(told, key=lambda r: r.request.id))
            for reading in told:
                shuffled.tell([reading])
            assert straight.closed == shuffled.closed

    def test_neither_global_random_state_nor_clock_is_used(self) -> None:
        played = in_other_worlds(lambda: self.play(self.fresh(), self.n_requests).events)
        assert played[0] == played[1]

    # requests

    @pytest.mark.parametrize("seed", range(2))
    def test_requests_are_in_the_design_numbered_and_never_twice(self, seed: int) -> None:
        rng = random.Random(seed)
        sampler = self.fresh(seed=seed)
        journal = self.play(
            sampler, self.n_requests, concurrency=rng.randrange(1, 20), order=rng, score=self.score_or_failure
        )
        requests = [event.request for event in journal if event.reading is None]
        assert [request.id for request in requests] == list(range(len(requests)))
        assert all(request.cell in sampler.design for request in requests)
        assert len({request.cell for request in requests}) == len(requests), "a cell was asked twice"
        assert len(requests) == self.n_requests or sampler.stop_reason is not None
        assert all(request.propensity is None or 0 < request.propensity <= 1 for request in requests)

    def test_pending_is_what_was_asked_and_not_told(self) -> None:
        sampler = self.fresh()
        asked = sampler.ask(4)
        assert sampler.pending == asked
        assert sampler.asked == len(asked)
        sampler.tell([Reading(asked[-1], 0.5), Reading(asked[0], math.nan)])
        assert sampler.pending == asked[1:-1]

    def test_asking_for_nothing_gives_nothing(self) -> None:
        sampler = self.fresh()
        assert sampler.ask(0) == ()
        assert sampler.asked == 0

    def test_a_reading_told_twice_raises(self) -> None:
        sampler = self.fresh()
        reading = Reading(sampler.ask(1)[0], 0.5)
        sampler.tell([reading])
        with pytest.raises(SamplerError, match="exactly once"):
            sampler.tell([reading])

    def test_a_reading_never_asked_raises(self) -> None:
        sampler = self.fresh()
        request = sampler.ask(1)[0]
        with pytest.raises(SamplerError, match="not pending"):
            sampler.tell([Reading(Request(request.id + 1, request.cell), 0.5)])
        other = request.cell._replace(epoch=request.cell.epoch + 1)
        with pytest.raises(SamplerError, match="not pending"):
            sampler.tell([Reading(Request(request.id, other), 0.5)])

    # failures

    def test_nan_is_a_failure_like_none(self) -> None:
        assert self._decisions(lambda c: None if c.item == 1 else self.score(c)) == self._decisions(
            lambda c: math.nan if c.item == 1 else self.score(c)
        )

    def test_a_cell_that_always_fails_closes_and_is_reported(self) -> None:
        sampler = self.fresh()
        journal = self.play(sampler, self.n_requests, score=lambda c: None if c.item == 0 else self.score(c))
        tries: dict[Cell, int] = {}
        for reading in journal.readings:
            if reading.value is None:
                key = sampler.closes_as(reading.request.cell)
                tries[key] = tries.get(key, 0) + 1
        assert all(n <= _MOST_TRIES for n in tries.values()), "asked after it should have closed"
        assert set(sampler.closed) <= tries.keys()
        if self.asks_everything:
            assert sampler.closed, "a failed cell was not asked again"
            asked = {sampler.closes_as(request.cell) for request in sampler.ask(self.n_requests)}
            assert asked.isdisjoint(sampler.closed), "asked after it closed"

    def test_a_failure_is_asked_again(self) -> None:
        if not self.asks_everything:
            pytest.skip("need not ask everything")
        sampler = self.fresh()
        first = sampler.ask(1)[0]
        sampler.tell([Reading(first, None)])
        key = sampler.closes_as(first.cell)
        journal = self.play(sampler, self.n_requests)
        again = key in {sampler.closes_as(event.request.cell) for event in journal}
        assert again

    @pytest.mark.parametrize("concurrency", [1, 50])
    def test_when_everything_fails_it_stops_with_a_reason(self, concurrency: int) -> None:
        sampler = self.fresh()
        self.play(sampler, 100 * self.n_requests, score=lambda _: None, concurrency=concurrency)
        assert sampler.stop_reason
        assert sampler.closed
        assert sampler.ask(1) == ()
        assert sampler.pending == ()

    # scores

    @pytest.mark.parametrize(
        "score",
        SCORES,
    )
    def test_any_finite_scores_are_taken(self, score: Score) -> None:
        low, high = self.score_range or (-math.inf, math.inf)
        sampler = self.fresh()
        self.play(
            sampler, self.n_requests, score=lambda c: min(high, max(low, score(c) or 0.0)), concurrency=3
        )
        assert sampler.asked == self.n_requests or sampler.stop_reason is not None

    def test_scores_outside_the_range_are_refused_and_stay_pending(self) -> None:
        if self.score_range is None:
            pytest.skip("takes any finite score")
        low, high = self.score_range
        sampler = self.fresh()
        (request,) = sampler.ask(1)
        for outside in (high + (high - low), low - 0.01 * (high - low)):
            with pytest.raises(InvalidInputError, match="score_range"):
                sampler.tell([Reading(request, outside)])
            assert sampler.pending == (request,)
        sampler.tell([Reading(request, high)])

    def test_one_item(self) -> None:
        sampler = self.make(self.design(n_items=1), 0)
        self.play(sampler, self.n_requests)
        assert sampler.asked == self.n_requests or sampler.stop_reason is not None

    @pytest.mark.parametrize("n", [0, 1, 2])
    def test_a_budget_below_the_warm_up_is_no_error(self, n: int) -> None:
        sampler = self.fresh(played=n)
        assert sampler.asked == n
        assert sampler.pending == ()

    @pytest.mark.parametrize("seed", range(2))
    def test_never_empty_without_pending_or_reason(self, seed: int) -> None:
        rng = random.Random(seed)
        sampler = self.fresh(seed=seed)
        pending: list[Request] = []
        while sampler.asked < self.n_requests:
            if pending and rng.random() < 0.5:
                request = pending.pop(rng.randrange(len(pending)))
                sampler.tell([Reading(request, self.score_or_failure(request.cell))])
                continue
            asked = sampler.ask(rng.randrange(1, 6))  # raises SamplerError when stuck
            pending += asked
            if not asked and not pending:
                assert sampler.stop_reason
                break

    # phases

    def test_a_phase_is_given_where_counts_depend_on_phases(self) -> None:
        sampler = self.fresh()
        asked = [event.request for event in self.play(sampler, self.n_requests, score=self.score_or_failure)]
        phased = sampler.allocation is Allocation.PHASED
        assert all((request.phase is not None) is phased for request in asked)

    @pytest.mark.parametrize("concurrency", [1, 5])
    def test_scores_of_a_phase_decide_nothing_in_it(self, concurrency: int) -> None:
        """Under PHASED: whatever a phase's readings score, the same is asked in it and in those before."""
        if self.fresh().allocation is not Allocation.PHASED:
            pytest.skip("has no phases")
        seen = self.play(self.fresh(), self.n_requests, concurrency=concurrency)
        phase = {event.request.cell: event.request.phase or 0 for event in seen}
        assert max(phase.values()) > 1, "n_requests must be enough for several phases"
        for number in range(max(phase.values()) + 1):

            def other(cell: Cell, number: int = number) -> float:
                moved = phase.get(cell, number) >= number
                return self.score(cell._replace(epoch=cell.epoch + 1000 * moved))

            again = self.play(self.fresh(), self.n_requests, concurrency=concurrency, score=other)
            first, second = (
                [e.request for e in run if e.reading is None and (e.request.phase or 0) <= number]
                for run in (seen, again)
            )
            assert [(r.cell, r.phase) for r in first] == [(r.cell, r.phase) for r in second]

    # plans

    @pytest.mark.parametrize("concurrency", [1, 5])
    def test_a_plan_is_a_function_of_the_table_and_the_note(self, concurrency: int) -> None:
        """Another sampler that never asked anything plans the same, in any order of the plans."""
        other: Any = self.fresh()
        if not hasattr(other, "plan"):
            pytest.skip("is not asked for plans")
        seen = self._plans(concurrency, None)
        assert len(seen) > 1
        for table, last, planned in reversed(seen):
            assert _same(other.plan(table, pickle.loads(pickle.dumps(last))), planned)

    def test_a_plan_does_not_depend_on_the_order_of_readings_in_a_round(self) -> None:
        if isinstance(self.fresh(), RepeatSampler) or not hasattr(self.fresh(), "plan"):
            pytest.skip("plans before a round is finished")
        runs = [self._plans(7, random.Random(seed)) for seed in range(2)]
        assert all(_same(one, other) for one, other in zip(*runs, strict=False))

    def _plans(self, concurrency: int, order: random.Random | None) -> list[tuple[Any, Any, Any]]:
        """The table and the note of each plan of a run, and what was planned."""
        sampler: Any = self.fresh()
        plan, seen = sampler.plan, []

        def remembering(table: Any, last: Any) -> Any:
            before = deepcopy((table, last))
            planned = plan(table, last)
            assert _same(before, (table, last)), "plan() changed the table or the note"
            assert _same(planned, plan(table, last)), "planned twice, it plans something else"
            seen.append((*before, deepcopy(planned)))
            return planned

        sampler.plan = remembering
        n_requests = self.n_requests * (1 if isinstance(sampler, RepeatSampler) else 10)  # most end before
        self.play(sampler, n_requests, concurrency=concurrency, order=order, score=self.score_or_failure)
        return seen

    # costs

    def weighing(self, *, seed: int = 0) -> AskedSampler:
        """A fresh sampler that was told that costs matter."""
        sampler = self.fresh(seed=seed)
        sampler.weigh_costs()
        return sampler

    def test_equal_costs_change_no_decision(self) -> None:
        weighing = self.play(
            self.weighing(), self.n_requests, score=self.score_or_failure, cost=lambda c: 0.1
        )
        counting = self.play(self.fresh(), self.n_requests, score=self.score_or_failure)
        assert [event.request for event in weighing] == [event.request for event in counting]

    def test_costs_change_no_decision_unless_they_are_weighed(self) -> None:
        played = [
            self.play(self.fresh(), self.n_requests, score=self.score_or_failure, **options)
            for options in ({}, {"cost": self.cost})
        ]
        assert [event.request for event in played[0]] == [event.request for event in played[1]]

    @pytest.mark.parametrize("scale", [1e-9, 1e9])
    def test_any_costs_are_taken_in_any_order_and_in_any_unit(self, scale: float) -> None:
        rng = random.Random(0)
        straight, shuffled = self.weighing(), self.weighing()
        left: list[Request] = []
        while straight.asked < self.n_requests:
            asked = straight.ask(rng.randrange(1, 12))
            assert shuffled.ask(len(asked) or 1) == asked
            left += asked
            if not left:
                assert straight.stop_reason == shuffled.stop_reason
                break
            rng.shuffle(left)
            told = [Reading(r, self.score_or_failure(r.cell), scale * self.cost(r.cell)) for r in left]
            left.clear()
            straight.tell(sorted(told, key=lambda r: r.request.id))
            for reading in told:
                shuffled.tell([reading])

    def test_resumed_from_its_journal_it_weighs_the_same_costs(self) -> None:
        original = self.weighing()
        journal = self.play(original, self.n_requests // 2, cost=self.cost, score=self.score_or_failure)
        again = self.weighing()
        resume(again, journal)
        on = [self.play(sampler, self.n_requests, cost=self.cost).events for sampler in (original, again)]
        assert on[0] == on[1]
        with pytest.raises(JournalError, match="costs"):
            resume(self.fresh(), journal)

    def test_costs_are_weighed_from_the_start_or_not_at_all(self) -> None:
        assert self.weighing().config["costs"] is True
        assert "costs" not in self.fresh().config
        with pytest.raises(SamplerError, match="weigh costs"):
            self.fresh(played=1).weigh_costs()

    # what a host may do

    @pytest.mark.parametrize("played", [0, 0.3, 0.8])
    def test_eligible_is_honoured(self, played: float) -> None:
        sampler = self.fresh(played=int(played * self.n_requests))
        assert sampler.ask(3, eligible=lambda cell: False) == ()
        if sampler.stop_reason is not None:
            assert self.fresh(played=sampler.asked).ask(1) == (), "stopped because nothing was eligible"
        for item in range(self.n_items):
            asked = sampler.ask(2, eligible=lambda cell, item=item: cell.item == item)  # type: ignore[misc]
            assert all(request.cell.item == item for request in asked)
            if asked:
                assert sampler.pending[-1] == asked[-1]
        if not sampler.pending:
            assert sampler.ask(1) or sampler.stop_reason is not None

    def test_an_adopted_cell_counts_as_asked(self) -> None:
        sampler = self.fresh()
        cell = Cell(item=self.n_items - 1)
        request = sampler.adopt(cell)
        assert request == Request(0, cell, request.propensity, request.phase)
        assert sampler.pending == (request,)
        sampler.tell([Reading(request, 0.5)])
        journal = self.play(sampler, self.n_requests)
        assert all(event.request.cell != cell for event in journal)
        assert journal.events[0].request.id == 1

    # journals

    def test_resumed_from_its_journal_it_goes_on_the_same(self) -> None:
        for n, concurrency in ((1, 1), (self.n_requests // 4, 5), (self.n_requests // 2, 1)):
            original = self.fresh()
            journal = self.play(
                original, n, concurrency=concurrency, order=random.Random(n), score=self.score_or_failure
            )
            for request in original.ask(3):
                journal.ask(request)
            again = self.fresh()
            resume(again, journal)
            assert again.pending == original.pending == journal.pending
            assert again.closed == original.closed
            assert self.play(again, self.n_requests).events == self.play(original, self.n_requests).events

    def test_resumed_after_eligible_and_adopted_requests(self) -> None:
        original, journal = self.fresh(), Journal()
        for number in range(2 * self.n_items):
            if number % 3 == 0:
                cell = Cell(item=number % self.n_items, epoch=100 + number)
                request = original.adopt(cell)
                journal.ask(request, adopted=True)
            else:
                asked = original.ask(1, eligible=lambda cell, n=number: cell.item == n % self.n_items)  # type: ignore[misc]
                if not asked:
                    continue
                request = asked[0]
                journal.ask(request, restricted=True)
            reading = Reading(request, self.score(request.cell))
            original.tell([reading])
            journal.tell(reading)
        again = self.fresh()
        resume(again, journal)
        assert self.play(again, self.n_requests).events == self.play(original, self.n_requests).events

    def test_a_tampered_journal_is_refused(self) -> None:
        events = self.play(self.fresh(), self.n_requests // 2).events
        first, told = events[0], events[1]
        cell = first.request.cell
        elsewhere = cell._replace(epoch=cell.epoch + 1000)
        for bad in (
            [Event(replace(first.request, cell=elsewhere)), *events[1:]],
            [Event(replace(first.request, id=7)), *events[1:]],
            [first, told, told, *events[2:]],
            [told, first, *events[2:]],
        ):
            with pytest.raises(JournalError):
                resume(self.fresh(), Journal(events=bad))

    def test_a_journal_of_another_seed_or_design_is_refused(self) -> None:
        journal = self.play(self.fresh(seed=1), 3)
        with pytest.raises(JournalError, match="seed"):
            resume(self.fresh(seed=2), journal)
        with pytest.raises(JournalError, match="another design"):
            resume(self.make(self.design(self.n_items + 1), 1), journal)
        used = self.fresh(seed=1, played=1)
        with pytest.raises(JournalError, match="fresh"):
            resume(used, journal)

    def _decisions(self, score: Score) -> list[Request]:
        journal = self.play(self.fresh(), self.n_requests, score=score)
        return [event.request for event in journal if event.reading is None]
