"""Arms of one race in several processes: the decisions of one, and what happens when one of them ends."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.claims import variant

from evalbudget.book._turn import Turn
from evalbudget.errors import InvalidInputError, StoreDownError, StoreError
from evalbudget.races import Entry, KnownCell, RaceConfig, RacePurchase, leaderboard_of
from evalbudget.races._lanes import CUT_OFF, SILENT

ITEMS = [f"item {i}" for i in range(15)]
ARMS = ("a", "b", "c", "d")
CONFIG = RaceConfig(budget="40", seed=2)
STRENGTH = {"a": 0.9, "b": 0.5, "c": 0.6, "d": 0.2}


def value_of(arm: str, key: tuple[str, int]) -> float:
    return float(random.Random(f"{arm} {key}").random() < STRENGTH[arm])


def shared(config: RaceConfig, store: str, arms: int = 4) -> RaceConfig:
    return replace(config, store=store, all_arms=arms)


def worker(config: RaceConfig, items: list[str], entries: list[Entry], **more: Any) -> RacePurchase:
    names = [entry.arm for entry in entries]
    race = RacePurchase(config, names, items, widths=[3] * len(names), about={"task": "t"}, **more)
    race.join(entries)
    return race


@contextmanager
def crew(
    store: str, *entries: Entry, config: RaceConfig = CONFIG, arms: int = 4, **more: Any
) -> Iterator[list[RacePurchase]]:
    """A worker for each entry."""
    found: list[RacePurchase] = []
    try:
        found += [worker(shared(config, store, arms), ITEMS, [entry], **more) for entry in entries]
        yield found
    finally:
        for each in found:
            each.close()


def cells_bought(race: RacePurchase) -> list[Any]:
    """In whatever order they were asked."""
    return sorted((each.request.cell, each.value, each.cost) for each in race.book.readings())


def wait_for_silence(race: RacePurchase) -> None:
    """Of the first arm."""
    deadline = time.monotonic() + 60
    race.look()
    while race.lanes[0].left is None and time.monotonic() < deadline:
        time.sleep(0.05)
        race.look()
    assert race.lanes[0].left == SILENT


def four(**more: Any) -> list[Entry]:
    return [Entry(arm, **more) for arm in ARMS]


@pytest.mark.parametrize(
    ("store", "sampler"),
    [
        variant("sqlite", "race"),
        variant("sqlite", "uniform"),
        ("sqlite", "sequential-halving"),
        ("postgresql", "race"),
        variant("postgresql", "uniform"),
        variant("postgresql", "sequential-halving"),
    ],
    indirect=["store"],
)
def test_they_take_the_decisions_of_one_process(store: str, sampler: str) -> None:
    config = RaceConfig(budget="40", seed=2, sampler=sampler)
    rng = random.Random(5)
    alone = RacePurchase(config, ARMS, ITEMS, widths=[3] * 4)
    with_host: list[tuple[RacePurchase, Any]] = []
    with crew(store, *four(), config=config) as workers:
        for worker in workers:
            worker.look()
        while not (alone.finished and not with_host):
            worker = rng.choice(workers)
            with_host += [(worker, asked) for asked in worker.wanted()]
            theirs = alone.wanted()
            if with_host and rng.random() < 0.6:
                owner, asked = with_host.pop(rng.randrange(len(with_host)))
                arm = ARMS[asked.arm]
                value = value_of(arm, asked.key)
                owner.completed(asked.arm, asked.key, value)
                alone.completed(asked.arm, asked.key, value)
            assert not theirs or all(lane.flights.keys() for lane in alone.lanes if lane.running)
        for worker in workers:
            worker.turn()
            assert worker.finished
            assert cells_bought(worker) == cells_bought(alone)
            assert leaderboard_of(worker).as_json == leaderboard_of(alone).as_json
        assert alone.evaluations == 40


def test_it_begins_when_all_arms_are_there(store: str) -> None:
    first, *others = four()
    with crew(store, first) as (one,):
        assert (one.begun, one.missing, one.wanted()) == (False, 3, [])
        with crew(store, *others) as workers:
            one.look()
            assert one.begun
            assert one.design.models == ARMS
            assert {asked.arm for asked in one.wanted()} == {0}
            assert one.wanted() == []  # given once
            assert {asked.arm for asked in workers[0].wanted()} == {1}


def test_what_was_known_before_counts(store: str) -> None:
    known = [KnownCell((ITEMS[0], 1), 1.0, 1), KnownCell((ITEMS[1], 1), None, 2, error="down")]
    entries = [Entry("a", known, unread=2.0), *four()[1:]]
    with crew(store, *entries) as workers:
        for worker in workers:
            worker.look()
            assert worker.evaluations == 5
            assert worker.lanes[0].tally.readings == 1


def test_a_worker_that_is_started_again_goes_on(store: str) -> None:
    with crew(store, *four()) as workers:
        had = workers[0].wanted()
        workers[1].look()
        workers[0].close()
        kept, lost = had[0], had[1:]
        entry = Entry("a", [KnownCell(kept.key, 0.5, 1)])
        again = worker(shared(CONFIG, store, 4), ITEMS, [entry])
        assert again.lanes[0].tally.readings == 1
        assert again.lanes[0].tally.errors == {CUT_OFF: len(lost)}
        assert again.evaluations == len(had)
        assert again.wanted()
        workers[1].look()
        assert workers[1].lanes[0].left is None
        workers[0] = again


def test_a_worker_that_gives_no_sign_of_life_leaves_the_race(store: str) -> None:
    with crew(store, *four(), lease=0.8) as workers:
        had = workers[0].wanted()
        workers[0].book._workers.close()
        wait_for_silence(workers[1])
        assert workers[1].lanes[0].evaluations == len(had)
        with pytest.raises(StoreError, match="the race has gone on without a"):
            worker(shared(CONFIG, store, 4), ITEMS, [Entry("a")])


def test_what_a_silent_worker_was_running_counts_with_every_attempt_it_may_have_made(store: str) -> None:
    cut = KnownCell((ITEMS[3], 1), None, 2, again=True)
    with crew(store, Entry("a", [cut]), *four()[1:], lease=0.8, attempts=3) as workers:
        had = workers[0].wanted()
        workers[0].book._workers.close()
        wait_for_silence(workers[1])
        most = 2 + 3 + 3 * len(had)
        assert workers[1].lanes[0].evaluations == workers[1].book.spent == most
        assert workers[1].lanes[0].tally.spent == most


def test_an_arm_runs_in_one_place_only(store: str) -> None:
    message = "a is in this race already, run by another worker"
    with crew(store, *four()[:2]), pytest.raises(InvalidInputError, match=message):
        worker(shared(CONFIG, store, 4), ITEMS, [Entry("a"), Entry("c")])


def test_who_is_replaced_by_a_living_process_ends(store: str) -> None:
    message = "another process goes by the name a now"
    with crew(store, *four()) as workers, crew(store, four()[0]), pytest.raises(StoreError, match=message):
        workers[0].wanted()


@pytest.mark.parametrize(
    ("config", "items", "arms", "message"),
    [
        (RaceConfig(budget="71", seed=2), ITEMS, 4, "budget = '40' there, '71' here"),
        (RaceConfig(budget="40", seed=3), ITEMS, 4, "seed = '2' there, '3' here"),
        (CONFIG, ITEMS[:-1], 4, "another design"),
        (CONFIG, ITEMS, 5, "all_arms = '4' there, '5' here"),
    ],
)
def test_a_worker_of_another_race_is_refused(
    store: str, config: RaceConfig, items: list[str], arms: int, message: str
) -> None:
    with crew(store, four()[0]), pytest.raises(StoreError, match=message):
        worker(shared(config, store, arms), items, [Entry("b")])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"budget": "20x", "store": "s.db"}, "go together"),
        ({"budget": "20x", "all_arms": 3}, "go together"),
        ({"budget": "20x", "all_arms": 1, "store": "s.db"}, "needs 2 arms or more"),
        ({"budget": "20x", "all_arms": 2, "store": "s.db", "history": "."}, "take no --history"),
    ],
)
def test_what_cannot_be_shared(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        RaceConfig.of(**settings)


def test_more_arms_than_race(store: str) -> None:
    with pytest.raises(InvalidInputError, match="3 arms run here, and the race has 2 in all"):
        worker(shared(CONFIG, store, 2), ITEMS, four()[:3])
    with crew(store, *four()), pytest.raises(InvalidInputError, match="has begun with a, b, c, d"):
        worker(shared(CONFIG, store), ITEMS, [Entry("e")])


@pytest.mark.parametrize("committed", [True, False])
def test_a_store_that_goes_in_the_middle_of_a_turn(
    store: str, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    with crew(store, *four()) as workers:
        one = workers[0]
        asked = one.wanted()
        real = Turn.write

        def write(turn: Turn) -> None:
            monkeypatch.setattr(Turn, "write", real)
            if committed:
                real(turn)
                turn.connection.connection.commit()
            raise StoreDownError("gone")

        monkeypatch.setattr(Turn, "write", write)
        one.completed(asked[0].arm, asked[0].key, 1.0)
        assert one.lanes[0].tally.readings == 1
        assert asked[0] not in one.wanted()
        workers[1].look()
        assert workers[1].evaluations == one.evaluations == 1


def test_what_does_not_fit_is_not_paid_though_the_turn_before_was_broken_off(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    race = worker(shared(CONFIG, store), ITEMS, four(), defers=True)
    race.turn()
    race.pay(0, 10.0)  # with the next turn
    real = Turn.write

    def write(turn: Turn) -> None:
        monkeypatch.setattr(Turn, "write", real)
        real(turn)
        turn.connection.connection.commit()
        raise StoreDownError("gone")

    monkeypatch.setattr(Turn, "write", write)
    assert not race.pays(0, 30.0)
    assert race.evaluations == race.book.spent == 10
    race.close()


def test_an_arm_that_was_taken_for_silent_before_the_race_joins_again(store: str) -> None:
    first, *others = four()
    with crew(store, first, lease=0.8) as (one,):
        one.book._workers.close()
        with crew(store, *others[:2], lease=0.8) as workers:
            deadline = time.monotonic() + 60
            while workers[0].missing == 1 and time.monotonic() < deadline:
                time.sleep(0.05)
                workers[0].look()
            assert workers[0].missing == 2
            one.look()
            workers[0].look()
            assert workers[0].missing == 1


def test_who_is_started_again_before_the_race_begins_is_counted_once(store: str) -> None:
    known = [KnownCell((ITEMS[0], 1), 1.0, 1)]
    late = [Entry("c", known, unread=2.0), Entry("d", known, unread=2.0)]
    with crew(store, *four()[:2]) as workers:
        gone = RacePurchase(shared(CONFIG, store), ["c", "d"], ITEMS, about={"task": "t"})
        gone.join(late[:1])
        gone.close()
        workers.append(worker(shared(CONFIG, store), ITEMS, late))
        for each in workers:
            each.look()
            assert each.begun
            assert [lane.evaluations for lane in each.lanes] == [0, 0, 3, 3]
            assert each.book.spent == 6.0


@pytest.mark.parametrize("fate", ["completed", variant("left out"), variant("silent"), "started again"])
def test_what_was_cut_off_before_runs_again(store: str, fate: str) -> None:
    cut = KnownCell((ITEMS[3], 1), None, 2, again=True)
    known = [cut] if fate != "left out" else [cut, KnownCell(("gone", 1), 0.5, 38)]
    with crew(store, Entry("a", known), *four()[1:], lease=0.8 if fate == "silent" else 60.0) as workers:
        one, other = workers[0], workers[1]
        one.look()
        other.look()
        if fate == "left out":
            assert one.left_out == other.left_out == {(0, cut.key)}
            assert one.evaluations == other.evaluations == 40
            return
        assert (list(one.lanes[0].flights), one.book.spent) == ([cut.key], 3.0)
        assert not other.lanes[0].flights
        if fate == "completed":
            one.completed(0, cut.key, 1.0, attempts=3)
        elif fate == "silent":
            one.book._workers.close()
            wait_for_silence(other)
        else:
            one.close()
            one = workers[0] = worker(shared(CONFIG, store), ITEMS, [Entry("a")])
        other.look()
        for each in (other,) if fate == "silent" else (one, other):
            assert each.lanes[0].evaluations == 3
        assert (other.book.spent, other.lanes[0].tally.readings) == (3.0, int(fate == "completed"))
        if fate != "silent":
            asked = [a.key for a in one.wanted()]
            assert cut.key not in asked
            assert len(asked) == 3


@pytest.mark.parametrize("budget", ["26", variant("27"), variant("30"), "33"])
def test_nobody_leaves_while_others_run_again_what_was_cut_off(store: str, budget: str) -> None:
    """What is put aside for it is left over, and buys cells of whichever arm."""
    config = RaceConfig(budget=budget, seed=2, sampler="uniform")
    alone = RacePurchase(replace(config, budget="60"), ARMS, ITEMS, widths=[1] * 4)
    order: list[str] = []
    while asked := alone.wanted():
        for each in asked:
            order.append(each.key[0])
            alone.completed(each.arm, each.key, 1.0)
    last = list(dict.fromkeys(order))[-2:]  # which nobody asks for within this budget
    cut = [KnownCell((item, 1), None, 1, again=True) for item in last]
    entries = [Entry(arm, cut if arm == "b" else ()) for arm in ARMS]
    with crew(store, *entries, config=config, attempts=3) as workers:
        others = [workers[0], *workers[2:]]

        def go_on() -> None:
            for _ in range(40):
                for each in workers:
                    for asked in each.wanted():
                        each.completed(asked.arm, asked.key, 1.0)

        workers[0].look()
        go_on()
        assert len(workers[1].lanes[1].flights) == 2
        assert not any(each.finished for each in others)
        for key in list(workers[1].lanes[1].flights):
            workers[1].completed(1, key, 1.0, attempts=2)
        go_on()
        assert all(each.finished for each in workers)
        assert 0 <= int(budget) - workers[0].evaluations < 3


def test_a_race_that_was_stopped_stays_so_for_who_was_cut_off_before_the_end(store: str) -> None:
    with crew(store, *four()) as workers:
        for each in workers:
            each.look()
        given = [each.wanted() for each in workers]
        too_dear = given[0].pop(0)
        workers[0].unaffordable(0, too_dear.key)
        for each, asked in zip(workers, given, strict=True):
            for one in asked:
                each.completed(one.arm, one.key, 1.0)
        for each in workers[:3]:
            each.turn()
            assert each.finished
        for each in workers:
            each.close()
        again = worker(shared(CONFIG, store), ITEMS, [Entry("d")])
        assert again.wanted() == []
        assert again.finished
        again.close()


def test_threads_that_leave_and_pay_wait_for_nobody_for_ever(store: str) -> None:
    race = worker(shared(CONFIG, store), ITEMS, four())
    race.turn()

    def spend(arm: int) -> None:
        for _ in range(4):
            race.pay(arm, 1.0)
            with race.steady():
                race.pay(arm, 1.0)
        race.leave(arm, "done")

    threads = [threading.Thread(target=spend, args=(arm,), daemon=True) for arm in range(3)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        race.turn()
    for thread in threads:
        thread.join(60)
    assert race.evaluations == race.book.spent == 24
    race.close()


def test_an_arm_leaves_once(store: str) -> None:
    with crew(store, *four()) as workers:
        workers[0].look()
        workers[0].leave(0, "its task ended early")
        workers[0].leave(0, "once more")
        workers[1].look()
        assert [each.lanes[0].left for each in workers[:2]] == ["its task ended early"] * 2


def test_retries_of_an_arm_that_was_cut_off_count(store: str) -> None:
    with crew(store, *four()) as workers:
        had = workers[0].wanted()
        workers[0].close()
        again = worker(shared(CONFIG, store), ITEMS, [Entry("a", unread=len(had) + 4)])
        assert again.evaluations == len(had) + 4
        workers[0] = again


def test_whoever_is_killed_while_it_takes_over_counts_nothing_twice(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(race: RacePurchase) -> None:
        race.book._workers.close()
        race.book._db.close()

    real, left = Turn.write, 0

    def write(turn: Turn) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise KeyboardInterrupt
        real(turn)

    cut = KnownCell((ITEMS[3], 1), None, 1, again=True)
    with crew(store, Entry("a", [cut]), *four()[1:]) as workers:
        workers[0].look()
        had = workers[0].wanted()
        workers[0].close()
        with monkeypatch.context() as patch:
            patch.setattr(RacePurchase, "close", dies)
            patch.setattr(Turn, "write", write)
            for turns in range(1, 20):
                left = turns
                try:
                    again = worker(shared(CONFIG, store), ITEMS, [Entry("a", unread=len(had) + 5)])
                except KeyboardInterrupt:
                    continue
                break
        assert turns > 3
        assert again.evaluations == again.book.spent == 1 + len(had) + 5
        workers[0] = again


def test_another_task_is_refused(store: str) -> None:
    config = shared(CONFIG, store)
    one = RacePurchase(config, ["a"], ITEMS, about={"task": "geography"})
    with pytest.raises(StoreError, match="task = 'geography' there, 'history' here"):
        RacePurchase(config, ["b"], ITEMS, about={"task": "history"})
    one.close()


def test_a_password_is_refused_since_hosts_log_what_is_typed() -> None:
    for url in ("postgresql://me:secret@db/x#y", "postgresql://db/x?password=secret#y"):
        with pytest.raises(InvalidInputError, match="PGPASSWORD") as caught:
            RaceConfig.of(budget=100, store=url, all_arms=2)
        assert "secret" not in str(caught.value)
