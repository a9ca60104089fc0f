"""A race's purchase against a host played by the test: budget, arms that leave, cells known before."""

from __future__ import annotations

import numpy as np
import pytest
from tests.host_inspect.worlds import kept_in_memory, killed, paid_by

from evalbudget.budget import Budget, Unit
from evalbudget.prices import Tariff, Usage
from evalbudget.races._config import RaceConfig
from evalbudget.races._lanes import Asked, Key, KnownCell
from evalbudget.races._leaderboard import leaderboard_of
from evalbudget.races._purchase import RacePurchase
from evalbudget.run import LOST, Bill
from evalbudget.store import Database

ITEMS = [f"i{k}" for k in range(20)]
ARMS = ["a", "b", "c"]


def _race(
    budget: int,
    *,
    sampler: str = "ucb-e",
    attempts: int = 1,
    batch: int = 4,
    where: Database | None = None,
) -> RacePurchase:
    config = RaceConfig.of(budget=budget, sampler=sampler, batch=batch)
    return RacePurchase(config, ARMS, ITEMS, attempts=attempts, widths=[3, 2, 5], where=where)


def _score(asked: Asked) -> float:
    return float(
        np.random.default_rng([asked.arm, int(asked.key[0][1:])]).random() < (0.2, 0.9, 0.5)[asked.arm]
    )


def _play(race: RacePurchase, seed: int, *, fail: float = 0.0) -> list[Asked]:
    """Completes cells in random order until nothing is asked; returns them all."""
    rng = np.random.default_rng(seed)
    done: list[Asked] = []
    open_cells = race.wanted()
    while open_cells:
        assert race.free >= -1e-9
        asked = open_cells.pop(int(rng.integers(len(open_cells))))
        wanted, attempts = int(rng.integers(1, race.attempts + 1)), 0
        race.started(asked.arm, asked.key)
        while attempts < wanted and race.may_run(asked.arm, asked.key):
            race.attempt_failed(asked.arm, asked.key)
            attempts += 1
        value = None if attempts < wanted or rng.random() < fail else _score(asked)
        race.completed(asked.arm, asked.key, value, attempts=attempts)
        done.append(asked)
        open_cells += race.wanted()
    return done


@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize("fail", [0.0, 0.3])
def test_the_budget_is_used_up_and_not_exceeded(attempts: int, fail: float) -> None:
    for seed in range(5):
        race = _race(40, attempts=attempts)
        _play(race, seed, fail=fail)
        assert race.finished
        assert race.spent == 40
        assert race.spent == sum(lane.tally.spent for lane in race.lanes)


def test_what_is_bought_does_not_depend_on_the_order_of_completion() -> None:
    bought = [sorted((a.arm, a.key) for a in _play(_race(37), seed)) for seed in range(6)]
    assert all(other == bought[0] for other in bought)


def test_an_arm_that_leaves_does_not_hold_up_the_others() -> None:
    race = _race(40)
    first = race.wanted()
    assert {asked.arm for asked in first} == {0, 1, 2}
    running = [asked for asked in first if asked.arm == 1]
    race.started(*_of(running[0]))
    race.leave(1, "its task ended early")
    assert race.lanes[1].tally.spent == 1  # what ran may have been billed, what only waited was not
    for asked in first:
        if asked.arm != 1:
            race.completed(asked.arm, asked.key, _score(asked))
    rest = _play(race, 0)
    assert rest
    assert {asked.arm for asked in rest} == {0, 2}
    assert race.spent == 40 or race.sampler.stop_reason
    race.leave(0, "gone")
    race.leave(2, "gone")
    assert race.finished


def _of(asked: Asked) -> tuple[int, tuple[str, int]]:
    return asked.arm, asked.key


def test_known_cells_lead_to_the_same_race() -> None:
    whole = _play(_race(40), 1)
    half = whole[:17]
    resumed = _race(40)
    known = {arm: [KnownCell(a.key, _score(a), 1) for a in half if a.arm == arm] for arm in range(len(ARMS))}
    resumed.replay(known)
    assert resumed.spent == 17
    rest = _play(resumed, 2)
    assert sorted(map(_of, half + rest)) == sorted(map(_of, whole))


def test_known_failures_cost_and_cancelled_cells_run_again() -> None:
    first, second = (a.key[0] for a in _race(30, sampler="uniform").wanted()[:6] if a.arm == 0)
    race = _race(60, sampler="uniform")
    failed = KnownCell((first, 1), None, 2, error="TimeoutError")
    race.replay({0: [failed, KnownCell((second, 1), None, 1, again=True)]})
    assert race.spent == 2
    assert race.free == 60 - 2 - 2
    assert race.lanes[0].tally.errors == {"TimeoutError": 1}
    asked = _play(race, 0)
    assert (second, 1) not in [a.key for a in asked if a.arm == 0]  # the host has it already
    race.completed(0, (second, 1), 1.0, attempts=2)
    assert race.spent == 4 + len(asked)
    assert (0, (first, 2)) in [_of(a) for a in _play(race, 0)]  # asked again as the next epoch


def test_what_was_cut_off_runs_again_only_if_the_budget_pays_for_both() -> None:
    whole = _play(_race(30, sampler="uniform"), 0)
    read, cut = whole[:10], whole[10:25]
    known = {
        arm: [KnownCell(a.key, _score(a), 1) for a in read if a.arm == arm]
        + [KnownCell(a.key, None, 0, again=True) for a in cut if a.arm == arm]
        for arm in range(len(ARMS))
    }
    race = _race(30, sampler="uniform", where=kept_in_memory(25.0))
    left_out = race.replay(known)
    assert race.spent == 10 + 15
    assert race.free == 0
    assert len(left_out) == 15 - 5
    assert left_out < {(a.arm, a.key) for a in cut}


@pytest.mark.parametrize("budget", range(40, 46))
def test_what_was_told_last_counts_for_the_last_cells(budget: int) -> None:
    race = _race(budget, sampler="uniform", attempts=3)
    while open_cells := race.wanted():
        for asked in open_cells:  # the first arm always fails
            race.started(asked.arm, asked.key)
            tries = 0
            while asked.arm == 0 and race.may_run(asked.arm, asked.key) and tries < race.attempts:
                race.attempt_failed(asked.arm, asked.key)
                tries += 1
            value = None if asked.arm == 0 else _score(asked)
            race.completed(asked.arm, asked.key, value, attempts=tries or 1)
    assert race.spent == budget


@pytest.mark.parametrize("runs", [True, False], ids=["runs", "waits to be tried again"])
def test_failed_attempts_of_an_arm_that_leaves_are_paid(runs: bool) -> None:
    race = _race(40, sampler="uniform", attempts=3)
    asked = next(asked for asked in race.wanted() if asked.arm == 0)
    race.started(asked.arm, asked.key)
    for _ in range(2):
        race.attempt_failed(asked.arm, asked.key)
    if runs:
        race.leave(0, "its task ended early")
    else:
        race.abandoned(asked.arm, asked.key)
    assert (
        race.spent == 40 - (race.free + 3 * len([f for lane in race.lanes for f in lane.flights])) == 2 + runs
    )


def test_what_was_cut_off_is_tried_again_as_often_as_the_budget_pays() -> None:
    whole = [asked for asked in _play(_race(30, sampler="uniform"), 0) if asked.arm == 0]
    known = [
        *(KnownCell(a.key, _score(a), 1) for a in whole[:4]),
        KnownCell(whole[4].key, None, 1, again=True),
    ]
    race = _race(30, sampler="uniform", attempts=3, where=kept_in_memory(28.0))
    assert not race.replay({0: known})
    tries = 0
    while race.may_run(0, whole[4].key):
        race.attempt_failed(0, whole[4].key)
        tries += 1
    race.completed(0, whole[4].key, None, attempts=1 + tries, error="RuntimeError")
    assert (tries, race.spent) == (2, 30)


@pytest.mark.parametrize("attempts", [1, 3])
def test_what_is_put_aside_for_what_runs_again_is_not_paid_by_a_kill(attempts: int) -> None:
    kept = kept_in_memory(12.0)
    known = {
        arm: [KnownCell((item, 1), 1.0, 1) for item in ITEMS[:2]]
        + [KnownCell((item, 1), None, 1, again=True) for item in ITEMS[2:4]]
        for arm in range(len(ARMS))
    }
    for _ in range(4):
        race = _race(40, sampler="uniform", attempts=attempts, where=kept)
        assert not race.replay(known)
        assert (race.spent, race.free) == (
            12 - 6,
            40 - 12 - 6 * attempts,
        )  # what runs again counts at its end
        assert paid_by(kept) == 12
        killed(kept)
    race = _race(40, sampler="uniform", attempts=attempts, where=kept)
    race.replay(known)
    race.started(0, (ITEMS[2], 1))
    assert paid_by(kept) == 13
    if attempts > 1:
        race.attempt_failed(0, (ITEMS[2], 1))
        race.started(0, (ITEMS[2], 1))
        assert paid_by(kept) == 14
    race.abandoned(0, (ITEMS[3], 1))
    assert paid_by(kept) == 12 + attempts - (attempts == 3)
    race.completed(0, (ITEMS[2], 1), 1.0, attempts=1 + min(attempts, 2))
    assert paid_by(kept) == 12 + min(attempts, 2)


@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize("seed", range(8))
def test_killed_at_any_moment_its_book_has_what_was_begun(attempts: int, seed: int) -> None:
    rng, kept = np.random.default_rng(seed), kept_in_memory()
    logged: dict[tuple[int, Key], KnownCell] = {}
    begun = 0
    for life in range(6):
        race = _race(50, sampler="uniform", attempts=attempts, where=kept)
        left_out = race.replay({arm: [c for (a, _), c in logged.items() if a == arm] for arm in range(3)})
        for each in left_out:
            del logged[each]
        flying = [(arm, key) for arm, lane in enumerate(race.lanes) for key in lane.flights]
        flying += [(asked.arm, asked.key) for asked in race.wanted()]
        ends = int(rng.integers(0, 12)) if life < 5 else 1000
        while flying and ends:
            arm, key = flying.pop(int(rng.integers(len(flying))))
            before = logged[arm, key].attempts if (arm, key) in logged else 0
            tries, wanted = 0, int(rng.integers(1, attempts + 1))
            while tries < wanted and race.may_run(arm, key):
                race.started(arm, key)
                tries, begun = tries + 1, begun + 1
                assert paid_by(kept) == begun <= 50
                if tries < wanted:
                    race.attempt_failed(arm, key)
            if rng.random() < 0.4 and life < 5:  # under way when it is killed, and no log says so
                logged[arm, key] = KnownCell(key, None, before, again=True)
                continue
            race.completed(arm, key, 1.0, attempts=before + tries)
            logged[arm, key] = KnownCell(key, 1.0, before + tries)
            flying += [(asked.arm, asked.key) for asked in race.wanted()]
            ends -= 1
        assert paid_by(kept) == begun
        if life < 5:
            killed(kept)
    assert (race.spent, begun) == (50, 50)


@pytest.mark.parametrize("stops", [False, True])
def test_what_is_known_is_read_past_what_cannot_be_paid(stops: bool) -> None:
    whole = _play(_race(30, sampler="uniform"), 0)
    gap = whole[2:6]
    known = {
        arm: [KnownCell(a.key, _score(a), 1) for a in whole if a.arm == arm and a not in gap]
        for arm in range(len(ARMS))
    }
    race = _race(30, sampler="uniform", where=kept_in_memory(30.0))
    race.replay(known)
    if stops:
        race.book.stop("used up")
    assert race.wanted() == []
    assert race.finished
    n_read = [race.sampler.n_read(arm) for arm in range(len(ARMS))]
    assert n_read == [0 if stops else len(known[arm]) for arm in range(len(ARMS))]
    board = leaderboard_of(race)
    assert [(s.missing, s.readings + s.unread) for s in board.standings] == [(0, len(ITEMS))] * 3
    assert board.spent == 30


def test_an_absent_arm_counts_until_it_is_asked_for() -> None:
    done = _play(_race(60, sampler="uniform"), 0)
    race = _race(60, sampler="uniform")
    race.lanes[1].absent = True
    race.replay({arm: [KnownCell(a.key, _score(a), 1) for a in done if a.arm == arm] for arm in range(3)})
    assert race.wanted() == []
    assert race.finished
    assert race.sampler.eliminated == {}
    more = _race(60, sampler="uniform")
    more.lanes[1].absent = True
    more.replay({1: [KnownCell(a.key, _score(a), 1) for a in done if a.arm == 1][:5]})
    assert {asked.arm for asked in _play(more, 0)} == {0, 2}
    assert more.sampler.n_read(1) == 5


def test_answers_to_items_that_are_gone_are_paid_for() -> None:
    race = _race(40)
    race.replay({0: [KnownCell((f"gone-{k}", 1), 0.5, 2) for k in range(5)]})
    done = _play(race, 0)
    assert (len(done), race.spent) == (30, 40)
    assert race.lanes[0].tally.failures == {LOST: 10}


def test_what_is_lost_and_unread_leaves_less_for_what_was_cut_off() -> None:
    race = _race(30, sampler="uniform", where=kept_in_memory(10.0))
    gone = [KnownCell((f"gone-{k}", 1), 0.5, 1) for k in range(6)]
    cut = [KnownCell((item, 1), None, 0, again=True) for item in ITEMS]
    left_out = race.replay({0: [*gone, *cut]})
    assert len(left_out) == 0  # 30 - 6 - 4 pay for all 20
    less = _race(30, sampler="uniform", where=kept_in_memory(15.0))
    assert len(less.replay({0: [*gone, *cut]})) == 5
    assert (less.free, less.spent, less.evaluations) == (0, 15, 15)
    assert less.lanes[0].tally.failures == {LOST: 6}


def test_a_cell_that_the_host_gives_up_before_it_ran_costs_nothing_and_is_asked_again() -> None:
    race = _race(40, sampler="uniform")
    first = race.wanted()
    for asked in first:
        race.abandoned(asked.arm, asked.key)
    assert race.spent == 0
    assert race.free == 40
    assert not race.lanes[0].tally.failures
    done = _play(race, 0)
    assert len(done) == 40
    assert race.spent == 40


def test_a_cell_run_again_that_is_given_up_is_paid_no_more() -> None:
    race = _race(30, sampler="uniform")
    race.replay({0: [KnownCell((ITEMS[3], 1), None, 1, again=True)]})
    assert race.free == 28
    race.abandoned(0, (ITEMS[3], 1))
    assert race.free == 29  # what it had cost before is paid
    assert race.stop_reason == "not finished"
    assert len(_play(race, 0)) == 29
    assert race.evaluations == 30


def test_in_money_a_cell_begins_where_the_dearest_so_far_fits_beside_those_under_way() -> None:
    bill = Bill(Budget(100.0, Unit.TOKENS), Tariff(Unit.TOKENS))
    config = RaceConfig.of(budget="100tok", sampler="uniform")
    race = RacePurchase(config, ARMS, ITEMS, widths=[3, 3, 3], cost_of=bill.of_sample, bill=bill)
    assert len(race.wanted()) == 9
    one, *others = [(arm, key) for arm, lane in enumerate(race.lanes) for key in lane.flights]
    race.started(*one)
    hold = bill.reserve("m", 10, 10, sample="a")
    assert hold is not None
    bill.settle(hold, Usage(input=20))
    race.completed(*one, 1.0, sample="a")
    assert race.wanted() == []  # 8 under way may cost 20 each
    for arm, key in others[:6]:
        race.abandoned(arm, key)
    assert len(race.wanted()) == 2  # 20 spent; 4 x 20 fit


@pytest.mark.parametrize("is_asked", [True, False])
def test_in_money_a_cell_begins_where_the_dearest_so_far_fits_beside_what_runs_again(is_asked: bool) -> None:
    config = RaceConfig.of(budget="100tok", sampler="ucb-e", batch=4)
    whole = RacePurchase(RaceConfig.of(budget=60, sampler="ucb-e", batch=4), ARMS, ITEMS).wanted()
    first = {asked.key for asked in whole if asked.arm == 0}  # the pass that is under way
    again = [(item, 1) for item in ITEMS if ((item, 1) in first) is is_asked][-2:]
    bill = Bill(Budget(100.0, Unit.TOKENS), Tariff(Unit.TOKENS))
    hold = bill.reserve("m", 10, 10, sample="a")
    assert hold is not None
    bill.settle(hold, Usage(input=20))
    race = RacePurchase(config, ARMS, ITEMS, widths=[3, 3, 3], cost_of=bill.of_sample, bill=bill)
    race.replay({0: [KnownCell(key, None, 1, again=True, sample="a") for key in again]})
    asked = race.wanted()
    flights = race.lanes[0].flights
    assert [flights[key].request is not None for key in again] == [is_asked, is_asked]
    assert len(asked) == 2  # 20 spent; 4 x 20 fit


@pytest.mark.parametrize("in_money", [False, True])
def test_nobody_runs_again_what_was_cut_off_of_an_arm_that_is_absent(in_money: bool) -> None:
    config = RaceConfig.of(budget="100tok" if in_money else 60, sampler="uniform")
    bill = Bill(Budget(100.0, Unit.TOKENS), Tariff(Unit.TOKENS)) if in_money else None
    cost_of = None if bill is None else bill.of_sample
    race = RacePurchase(config, ARMS, ITEMS, widths=[3, 3, 3], cost_of=cost_of, bill=bill)
    race.lanes[0].absent = True
    race.replay({0: [KnownCell((ITEMS[0], 1), None, 1, again=True)]})
    assert race.evaluations == 1
    assert not race.lanes[0].flights
    for arm in (1, 2):
        race.leave(arm, "gone")
    assert race.wanted() == []
    assert race.finished
