"""What is asked next, as a function of what is known: phases, what they wait for, and when there are none."""

from dataclasses import replace

import numpy as np
import pytest

from evalbudget.repeats._objective import Objective
from evalbudget.repeats._rounds import Note, Readings, Round, Wait
from evalbudget.repeats.phases._plan import Phases
from evalbudget.repeats.phases._spread import Scores
from evalbudget.statistics._bounds import FloatArray, IntArray

K = 10
ALL = np.ones(K, dtype=bool)


def sampler(n_items: int = K, **options: object) -> Phases:
    return Phases(n_items, 0, np.ones(n_items), **options)  # type: ignore[arg-type]


def table(
    item: IntArray | list[int] = (),  # type: ignore[assignment]
    phase: IntArray | int = 0,
    value: FloatArray | float = 1.0,
    *,
    left: int | None = 200,
    n_items: int = K,
) -> Readings:
    """Readings that all came back."""
    item = np.array(item, dtype=np.int64)
    return Readings(
        item=item,
        rater=np.zeros(item.size, dtype=np.int64),
        phase=np.broadcast_to(phase, item.shape).astype(np.int64),
        value=np.broadcast_to(value, item.shape).astype(np.float64),
        cost=None,
        under_way=np.zeros(item.size, dtype=bool),
        is_open=np.ones(n_items, dtype=bool),
        is_known=np.zeros(n_items, dtype=bool),
        left=left,
    )


def coins(left: int | None = 180) -> Readings:
    """Phase 0 of ten items: three that passed once, four that passed twice, and three that failed."""
    passed = np.repeat([[1, 0], [1, 1], [0, 0]], [3, 4, 3], axis=0).T.ravel()
    return table(np.arange(20) % K, 0, passed * 1.0, left=left)


def with_head(first: Readings, value: float = 0.0) -> Readings:
    """The same after the head of phase 1."""
    return replace(
        first,
        item=np.append(first.item, np.arange(K)),
        rater=np.append(first.rater, np.zeros(K, dtype=np.int64)),
        phase=np.append(first.phase, np.ones(K, dtype=np.int64)),
        value=np.append(first.value, np.full(K, value)),
        under_way=np.append(first.under_way, np.zeros(K, dtype=bool)),
    )


FIRST, HEAD = Note(0, 0, 20), Note(1, 20, 40, is_head=True)


def planned(found: Round | Wait) -> Round:
    assert isinstance(found, Round)
    return found


class TestPhaseZero:
    def test_it_is_every_item_twice_in_two_random_orders(self) -> None:
        found = planned(sampler().plan(table(), None))
        assert found.note == FIRST
        sweeps = found.item.reshape(2, K)
        assert (np.sort(sweeps) == np.arange(K)).all()
        assert (sweeps[0] != sweeps[1]).any()
        assert (sweeps[0] != np.arange(K)).any()

    def test_a_host_may_ask_more_of_it(self) -> None:
        assert planned(sampler(first=3).plan(table(), None)).note.end == 3 * K

    @pytest.mark.parametrize(("n_items", "left"), [(4, 400), (10, 19)])
    def test_few_items_or_a_small_budget_are_asked_equally_often_to_the_end(
        self, n_items: int, left: int
    ) -> None:
        part, item = None, np.zeros(0, dtype=np.int64)
        while item.size < 3 * n_items and (n_items < 5 or item.size < 19):
            known = table(item, n_items=n_items, left=left - item.size)
            found = planned(sampler(n_items).plan(known, part))
            part = found.note
            assert part.phase == 0
            assert (np.bincount(found.item) == found.item.size // n_items).all()
            item = np.append(item, found.item)

    def test_few_items_have_rounds_that_double(self) -> None:
        begun = table(np.arange(40) % 4, n_items=4, left=1000)
        assert planned(sampler(4).plan(begun, Note(0, 0, 40))).item.size == 40
        assert planned(sampler(4, until_known=True).plan(begun, Note(0, 0, 40))).item.size == 8
        assert planned(sampler(4).plan(replace(begun, left=9), Note(0, 0, 40))).item.size == 8


class TestHead:
    def test_it_needs_nothing_of_the_phase_before(self) -> None:
        begun = replace(coins(), under_way=np.ones(20, dtype=bool), value=np.full(20, np.nan))
        found = planned(sampler().plan(begun, FIRST))
        assert found.note == HEAD
        assert np.sort(found.item).tolist() == list(range(K))

    def test_items_that_were_given_up_are_in_no_further_phase(self) -> None:
        found = planned(sampler().plan(replace(coins(), is_open=ALL & (np.arange(K) != 3)), FIRST))
        assert np.sort(found.item).tolist() == [i for i in range(K) if i != 3]

    @pytest.mark.parametrize(("left", "end", "is_head"), [(13, 33, True), (20, 40, True), (29, 49, True)])
    def test_a_short_last_phase_is_joined_to_the_one_before(self, left: int, end: int, is_head: bool) -> None:
        found = planned(sampler().plan(coins(left), FIRST))
        assert found.note == Note(1, 20, end, is_head=is_head)

    def test_what_is_left_after_the_last_phase_goes_to_some_of_the_items(self) -> None:
        found = planned(sampler().plan(coins(4), FIRST))
        assert found.item.size == np.unique(found.item).size == 4
        assert not found.note.is_head

    def test_without_a_budget_phases_double(self) -> None:
        assert planned(sampler().plan(coins(None), FIRST)).note.end == 40

    def test_phases_end_with_the_readings_that_will_come_where_calls_fail(self) -> None:
        failing = table(np.arange(40) % K, 0, np.where(np.arange(40) < 20, 1.0, np.nan), left=32)
        assert failing.expected == 20 + 16
        assert planned(sampler().plan(failing, FIRST)).note.end == 36

    def test_readings_that_were_planned_and_given_up_are_not_waited_for(self) -> None:
        """What is left after a phase of which items were given up is one phase, not many of one reading."""
        given_up = replace(coins(12), is_open=ALL & (np.arange(K) > 0))
        found = planned(sampler().plan(given_up, Note(0, 0, 30)))
        assert found.note == Note(1, 20, 32, is_head=True)

    @pytest.mark.parametrize(("left", "size"), [(0, K), (1, 1), (4, 4)])
    def test_what_is_left_after_all_that_was_expected_is_one_phase(self, left: int, size: int) -> None:
        failing = table(np.arange(400) % K, 0, np.where(np.arange(400) < 20, 1.0, np.nan), left=left)
        found = planned(sampler().plan(failing, FIRST))
        assert found.item.size == np.unique(found.item).size == size


class TestRest:
    def test_it_waits_until_nineteen_of_twenty_before_it_are_in(self) -> None:
        for flying, missing in ((3, 2), (2, 1), (1, 0)):
            begun = with_head(coins())
            under_way = np.arange(30) < flying
            under_way[20:] = True  # the head is not waited for
            begun = replace(begun, under_way=under_way)
            found = sampler().plan(begun, HEAD)
            if missing:
                assert found == Wait(until=int((~under_way).sum()) + missing)
            else:
                assert isinstance(found, Round)

    def test_it_goes_by_earlier_phases_and_not_by_its_head(self) -> None:
        part = HEAD._replace(end=80)
        one, other = (planned(sampler().plan(with_head(coins(), v), part)) for v in (0.0, 1.0))
        assert (one.item == other.item).all()
        counts = np.bincount(one.item, minlength=K)
        assert counts.sum() == 60 - K
        assert counts[:3].min() > counts[3:].max()

    def test_where_no_two_readings_differ_all_items_get_the_same(self) -> None:
        same = with_head(table(np.arange(20) % K))
        counts = np.bincount(planned(sampler().plan(same, HEAD)).item, minlength=K)
        assert counts.tolist() == [1] * K

    def test_the_objective_follows_the_scores(self) -> None:
        ratings = table(np.arange(40) % K, 0, np.random.default_rng(0).integers(0, 5, 40) * 1.0)
        part = Note(1, 40, 240, is_head=True)
        for known, objective in (
            (with_head(ratings), Objective.WORST_ITEM),
            (with_head(coins()), Objective.MEAN),
        ):
            chosen, told = (planned(sampler(objective=o).plan(known, part)).item for o in (None, objective))
            assert (chosen == told).all()

    def test_items_that_are_known_get_their_reading_in_the_head_alone(self) -> None:
        known = np.arange(K) < 3
        begun = replace(with_head(coins()), is_known=known)
        found = planned(sampler(until_known=True).plan(begun, Note(1, 20, 60, is_head=True)))
        counts = np.bincount(found.item, minlength=K)
        assert (counts[:3] == 0).all()
        assert counts.sum() == 40 - 10

    def test_where_those_are_given_up_that_are_not_known_there_is_no_rest(self) -> None:
        begun = replace(with_head(coins()), is_known=np.arange(K) < 9, is_open=np.arange(K) < 9)
        found = planned(sampler(until_known=True).plan(begun, Note(1, 20, 60, is_head=True)))
        assert not found.item.size
        assert not found.note.is_head

    def test_a_run_until_items_are_known_has_phases_of_a_quarter(self) -> None:
        for read, end in ((20, 30), (40, 50), (400, 500)):
            item = np.arange(read) % K
            found = planned(sampler(until_known=True).plan(table(item, left=10**6), Note(3, 0, read)))
            assert found.note.end == end

    def test_what_judges_differ_by_is_taken_out(self) -> None:
        rng = np.random.default_rng(1)
        item, rater = np.arange(40) % K, np.arange(40) // K % 2
        spread = np.where(item < 3, 1.0, 0.01) * rng.normal(size=40)
        fair, biased = (
            with_head(replace(table(item, 0, spread + by * rater), rater=rater)) for by in (0.0, 64.0)
        )
        two = sampler(n_raters=2, scores=Scores.NUMBERS)
        part = Note(1, 40, 80, is_head=True)
        one, other = (np.bincount(planned(two.plan(each, part)).item, minlength=K) for each in (fair, biased))
        assert (one == other).all()
        assert one[:3].min() > one[3:].max()

    def test_dear_items_are_asked_less_and_equal_prices_change_nothing(self) -> None:
        known = with_head(coins())
        part = Note(1, 20, 120, is_head=True)
        plain = planned(sampler().plan(known, part)).item
        same = planned(sampler().plan(replace(known, cost=np.full(30, 0.1)), part)).item
        assert (plain == same).all()
        dear = np.where(known.item % 2 == 1, 1.0, 0.1)
        counts = np.bincount(planned(sampler().plan(replace(known, cost=dear), part)).item, minlength=K)
        assert counts[[0, 2]].min() > counts[1]

    def test_what_is_nearly_free_is_not_asked_without_end(self) -> None:
        known = with_head(coins())
        free = replace(known, cost=np.where(known.item == 0, 1e-12, 1.0))
        found = planned(sampler(objective=Objective.MSE).plan(free, Note(1, 20, 120, is_head=True))).item
        assert 40 < found.size < 100 / 0.01


def test_the_same_table_gives_the_same_plan_in_any_order_of_its_rows() -> None:
    begun = with_head(coins())
    turn = np.random.default_rng(0).permutation(30)
    columns = ("item", "rater", "phase", "value", "under_way")
    turned = replace(begun, **{name: getattr(begun, name)[turn] for name in columns})
    one, other = (planned(sampler().plan(each, HEAD)) for each in (begun, turned))
    assert (one.item == other.item).all()
    assert one.note == other.note == HEAD._replace(is_head=False)
