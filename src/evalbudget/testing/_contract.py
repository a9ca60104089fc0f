"""The contract of a sampler, as tests to inherit."""
# the names of the tests say what they test

from __future__ import annotations

import json
import math
import pickle
import random
from collections import Counter
from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from evalbudget.design import Cell, Design, Reading, Request
from evalbudget.errors import InvalidInputError
from evalbudget.sampler import Allocation, Kind, Sampler
from evalbudget.testing._play import Played, Score, fails, gaussian, in_other_worlds, play

_MOST_TRIES = 24
"""Of an item that always fails, whatever the others do."""


SCORES = [
    pytest.param(lambda c: 0.0, id="all-zero"),
    pytest.param(lambda c: 0.7, id="all-equal"),
    pytest.param(lambda c: float(c.item % 2), id="ties-everywhere"),
    pytest.param(lambda c: float(c.epoch % 2), id="same-variance-everywhere"),
    pytest.param(lambda c: float(c.item == 0 and c.epoch % 5 == 4), id="late-surprise"),
    pytest.param(lambda c: 1e29 * gaussian(c), id="huge"),
    pytest.param(lambda c: -1e29 * gaussian(c) if c.item else 1e-300, id="huge-and-tiny"),
    pytest.param(lambda c: 1e-300 * gaussian(c), id="tiny"),
    pytest.param(lambda c: -5.0 - gaussian(c), id="negative"),
]
"""Of any scale and shape."""


class MadeUpScores:
    """A design, and what becomes of its cells.

    Attributes:
        n_items: of the design.
        n_models: of the design.
        n_raters: of the design.
        n_requests: of one run; enough to get past the warm-up.
        asks_everything: every model, item and rater is asked until it is read, or closed after failures.
        score_range: smallest and largest score it takes, others are refused; None for any finite score.
    """

    n_items: ClassVar[int] = 6
    n_models: ClassVar[int] = 1
    n_raters: ClassVar[int] = 1
    n_requests: ClassVar[int] = 90
    asks_everything: ClassVar[bool] = True
    score_range: ClassVar[tuple[float, float] | None] = None

    def design(self, n_items: int | None = None) -> Design:
        """The design to test with; override for categories or particular names."""
        return Design(
            items=tuple(f"item {i}" for i in range(n_items or self.n_items)),
            models=tuple(f"model {i}" for i in range(self.n_models)),
            raters=tuple(f"rater {i}" for i in range(self.n_raters)),
        )

    def score(self, cell: Cell) -> float:
        """A score that the sampler takes, different from cell to cell."""
        score = gaussian(cell)
        if self.score_range is None:
            return score
        low, high = self.score_range
        return low + (high - low) / (1.0 + math.exp(-4.0 * score))

    def score_or_failure(self, cell: Cell) -> float | None:
        """As :meth:`score`, but some cells fail, those of item 1 more often."""
        return None if fails(cell) else self.score(cell)

    def cost(self, cell: Cell) -> float:
        """A cost over several decades, different from cell to cell; now and then nothing."""
        luck = random.Random(f"costs {cell}")
        item = luck.gauss(float(cell.item % 4) + 2.0 * cell.model, 0.5)
        return 0.0 if luck.random() < 0.1 else math.exp(item)


class SamplerContract(MadeUpScores):
    """What every sampler must do; inherit in a class named ``Test...`` and write :meth:`make`.

    Set ``n_items``, ``n_models``, ``n_requests``, ``asks_everything`` and ``score_range`` to what it is for.
    """

    def make(self, design: Design, seed: int) -> Sampler:
        """A fresh sampler; the same for the same arguments."""
        raise NotImplementedError("write make(self, design, seed) in your test class")

    def fresh(self, *, seed: int = 0) -> Sampler:
        """A sampler that was asked nothing."""
        return self.make(self.design(), seed)

    def play(self, sampler: Sampler, *, score: Score | None = None, **options: Any) -> Played:
        """As :func:`~evalbudget.testing.play`, with scores that the sampler takes."""
        return play(sampler, self.n_requests, score=score or self.score, **options)

    # what it says of itself

    def test_has_a_name_an_allocation_and_a_config_for_books(self) -> None:
        sampler = self.fresh()
        assert isinstance(sampler.name, str)
        assert sampler.name
        assert isinstance(sampler.allocation, Allocation)
        assert json.loads(json.dumps(sampler.config))["sampler"] == sampler.name
        assert sampler.config["seed"] == 0
        assert self.fresh(seed=1).config["seed"] == 1, "make() must hand the seed on"

    # deterministic

    def test_same_seed_and_scores_give_the_same_decisions(self) -> None:
        """Whatever the clock says, and global random states."""
        played = in_other_worlds(lambda: self.play(self.fresh(seed=5), concurrency=7, order=random.Random(1)))
        assert played[0] == played[1]

    @pytest.mark.parametrize("concurrency", [1, 5])
    def test_a_plan_is_a_function_of_the_cells_and_the_note(self, concurrency: int) -> None:
        """Another sampler that never planned anything plans the same, in any order of the plans."""
        other = self.fresh()
        seen = self._plans(concurrency, None)
        assert len(seen) > 1
        for cells, last, planned in reversed(seen):
            assert _same(other.decide(cells, pickle.loads(pickle.dumps(last))), planned)

    def test_who_answers_first_changes_no_plan_where_all_are_waited_for(self) -> None:
        if not self.fresh().waits_for_all:
            pytest.skip("plans before a round is finished")
        runs = [self._plans(7, random.Random(seed)) for seed in range(2)]
        planned = [[plan for _, _, plan in run] for run in runs]
        assert all(_same(one, other) for one, other in zip(*planned, strict=False))

    def _plans(self, concurrency: int, order: random.Random | None) -> list[tuple[Any, Any, Any]]:
        """The cells and the note of each plan of a run, and what was planned."""
        sampler: Any = self.fresh()
        decide, seen = sampler.decide, []

        def remembering(cells: Any, last: Any) -> Any:
            before = deepcopy((cells, last))
            planned = decide(cells, last)
            assert _same(before, (cells, last)), "decide() changed the cells or the note"
            assert _same(planned, decide(cells, last)), "planned twice, it plans something else"
            seen.append((*before, deepcopy(planned)))
            return planned

        sampler.decide = remembering
        n = self.n_requests * (1 if sampler.kind == Kind.REPEATS else 10)  # most end before
        play(sampler, n, concurrency=concurrency, order=order, score=self.score_or_failure)
        return seen

    def test_who_looks_changes_nothing(self) -> None:
        looked: Any = self.fresh()
        decide = looked.decide

        def looking(cells: Any, last: Any) -> Any:
            looked.look(cells, last)
            return decide(cells, last)

        looked.decide = looking
        played = [self.play(each, concurrency=4, together=2) for each in (looked, self.fresh())]
        assert played[0] == played[1]

    # requests

    @pytest.mark.parametrize("seed", range(2))
    def test_requests_are_in_the_design_and_no_call_is_made_twice(self, seed: int) -> None:
        rng = random.Random(seed)
        sampler = self.fresh(seed=seed)
        played = self.play(sampler, concurrency=rng.randrange(1, 20), order=rng, score=self.score_or_failure)
        requests = [reading.request for reading in played.readings]
        assert all(request.cell in sampler.design for request in requests)
        calls = [(r.cell.model, r.cell.item, n) for r, n in zip(requests, played.attempts, strict=True)]
        assert len(set(calls)) == len(calls), "a call was made twice"
        read = [reading.request.cell for reading in played.readings if reading.value is not None]
        assert len(set(read)) == len(read), "a cell was read twice"
        assert len(requests) == self.n_requests or played.stopped is not None
        assert all(request.propensity is None or 0 < request.propensity <= 1 for request in requests)
        phased = sampler.allocation is Allocation.PHASED
        assert all((request.phase is not None) is phased for request in requests), (
            "phases where counts depend on them"
        )

    # failures

    def test_a_cell_that_always_fails_closes_and_is_reported(self) -> None:
        sampler = self.fresh()
        played = self.play(sampler, score=lambda c: None if c.item == 0 else self.score(c))
        failed = [reading.request.cell for reading in played.readings if reading.value is None]
        tries = Counter(map(sampler.closes_as, failed))
        assert all(n <= _MOST_TRIES for n in tries.values()), "asked after it should have closed"
        assert set(played.closed) <= tries.keys()
        if self.asks_everything:
            assert played.closed, "a failed cell was not asked again"

    @pytest.mark.parametrize("concurrency", [1, 50])
    def test_when_everything_fails_it_stops_with_a_reason(self, concurrency: int) -> None:
        played = play(self.fresh(), 100 * self.n_requests, score=lambda _: None, concurrency=concurrency)
        assert played.stopped
        assert played.closed

    # scores

    @pytest.mark.parametrize(
        "score",
        SCORES,
    )
    def test_any_finite_scores_are_taken(self, score: Score) -> None:
        low, high = self.score_range or (-math.inf, math.inf)
        played = self.play(
            self.fresh(), score=lambda c: min(high, max(low, score(c) or 0.0)), concurrency=3, together=3
        )
        assert len(played.readings) == self.n_requests or played.stopped is not None

    def test_scores_outside_the_range_are_refused(self) -> None:
        if self.score_range is None:
            pytest.skip("takes any finite score")
        low, high = self.score_range
        sampler, request = self.fresh(), Request(0, Cell())
        for outside in (high + (high - low), low - 0.01 * (high - low)):
            with pytest.raises(InvalidInputError, match="score_range"):
                sampler.check(Reading(request, outside))
        for inside in (low, high, None):
            sampler.check(Reading(request, inside))

    def test_one_item(self) -> None:
        played = self.play(self.make(self.design(n_items=1), 0))
        assert len(played.readings) == self.n_requests or played.stopped is not None

    # phases

    @pytest.mark.parametrize("concurrency", [1, 5])
    def test_scores_of_a_phase_decide_nothing_in_it(self, concurrency: int) -> None:
        """Under PHASED: whatever a phase's readings score, the same is asked in it and in those before."""
        if self.fresh().allocation is not Allocation.PHASED:
            pytest.skip("has no phases")
        seen = self.play(self.fresh(), concurrency=concurrency)
        phase = {reading.request.cell: reading.request.phase or 0 for reading in seen.readings}
        assert max(phase.values()) > 1, "n_requests must be enough for several phases"
        for number in range(max(phase.values()) + 1):

            def other(cell: Cell, number: int = number) -> float:
                moved = phase.get(cell, number) >= number
                return self.score(cell._replace(epoch=cell.epoch + 1000 * moved))

            again = self.play(self.fresh(), concurrency=concurrency, score=other)
            first, second = (
                [r.request for r in run.readings if (r.request.phase or 0) <= number] for run in (seen, again)
            )
            assert [(r.cell, r.phase) for r in first] == [(r.cell, r.phase) for r in second]

    # costs

    def weighing(self) -> Sampler:
        """A fresh sampler that was told that costs matter."""
        sampler = self.fresh()
        sampler.weigh_costs()
        return sampler

    def test_costs_change_no_decision_unless_they_are_weighed_and_differ(self) -> None:
        counting, ignoring, weighing = (
            self.play(sampler, score=self.score_or_failure, cost=cost, concurrency=4, together=4)
            for sampler, cost in (
                (self.fresh(), lambda c: 1.0),
                (self.fresh(), self.cost),
                (self.weighing(), lambda c: 0.1),
            )
        )
        assert _requests(ignoring) == _requests(counting), "costs are not weighed, and change what is asked"
        assert _requests(weighing) == _requests(counting), "all costs are equal, and change what is asked"

    @pytest.mark.parametrize("scale", [1e-9, 1e9])
    def test_any_costs_are_taken_in_any_unit(self, scale: float) -> None:
        played = self.play(
            self.weighing(),
            score=self.score_or_failure,
            cost=lambda c: scale * self.cost(c),
            concurrency=5,
            together=5,
        )
        assert len(played.readings) == self.n_requests or played.stopped is not None

    def test_a_book_knows_whether_costs_are_weighed(self) -> None:
        assert self.weighing().config["costs"] is True
        assert "costs" not in self.fresh().config


def _requests(played: Played) -> list[Request]:
    return [reading.request for reading in played.readings]


def _same(one: Any, other: Any) -> bool:
    """Whether two values have the same parts; what the second one has besides may have been looked up."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=True)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, dict):
        return all(key in other and _same(value, other[key]) for key, value in one.items())
    if is_dataclass(one):
        return all(_same(getattr(one, each.name), getattr(other, each.name)) for each in fields(one))
    if hasattr(one, "__dict__") and not callable(one):
        return _same(vars(one), vars(other))
    return bool(one == other) or (one != one and other != other)
