"""Arms of one race in several processes: the decisions of one, and what happens when one of them ends."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from tests.claims import variant

from evalbudget.errors import InvalidInputError, StoreDownError, StoreError
from evalbudget.races import KnownCell, RaceConfig, RacePurchase, leaderboard_of
from evalbudget.races._shared_race import CUT_OFF, SILENT, Entry, SharedRace

ITEMS = [f"item {i}" for i in range(15)]
ARMS = ("a", "b", "c", "d")
CONFIG = RaceConfig(budget="40", seed=2)
STRENGTH = {"a": 0.9, "b": 0.5, "c": 0.6, "d": 0.2}


def value_of(arm: str, key: tuple[str, int]) -> float:
    return float(random.Random(f"{arm} {key}").random() < STRENGTH[arm])


def shared(config: RaceConfig, store: str, arms: int = 4) -> RaceConfig:
    return replace(config, store=store, all_arms=arms)


def worker(config: RaceConfig, items: list[str], entries: list[Entry], **more: Any) -> SharedRace:
    race = SharedRace(config, items, [entry.arm for entry in entries], about={"task": "t"}, **more)
    race.join(entries)
    return race


@contextmanager
def crew(
    store: str, *entries: Entry, config: RaceConfig = CONFIG, arms: int = 4, **more: Any
) -> Iterator[list[SharedRace]]:
    """A worker for each entry."""
    found: list[SharedRace] = []
    try:
        found += [worker(shared(config, store, arms), ITEMS, [entry], **more) for entry in entries]
        yield found
    finally:
        for each in found:
            each.close()


def four(**more: Any) -> list[Entry]:
    return [Entry(arm, 3, **more) for arm in ARMS]


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
    with_host: list[tuple[SharedRace, Any]] = []
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
            worker.look()
            assert worker.finished
            assert worker.book.readings() == alone.book.readings()
            assert leaderboard_of(worker).as_json == leaderboard_of(alone).as_json
        assert alone.evaluations == 40


def test_it_begins_when_all_arms_are_there(store: str) -> None:
    first, *others = four()
    with crew(store, first) as (one,):
        assert (one.begun, one.missing, one.wanted()) == (False, 3, [])
        with crew(store, *others) as workers:
            one.look()
            assert one.begun
            assert one.names == list(ARMS)
            assert {asked.arm for asked in one.wanted()} == {0}
            assert one.wanted() == []  # given once
            assert {asked.arm for asked in workers[0].wanted()} == {1}


def test_what_was_known_before_counts(store: str) -> None:
    known = [KnownCell((ITEMS[0], 1), 1.0, 1), KnownCell((ITEMS[1], 1), None, 2, error="down")]
    entries = [Entry("a", 3, known, unread=2.0), *four()[1:]]
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
        entry = Entry("a", 3, [KnownCell(kept.key, 0.5, 1)])
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
        workers[0]._log._over.set()
        workers[1].look()
        deadline = time.monotonic() + 60
        while workers[1].lanes[0].left is None and time.monotonic() < deadline:
            time.sleep(0.05)
            workers[1].look()
        assert workers[1].lanes[0].left == SILENT
        assert workers[1].lanes[0].evaluations == len(had)
        with pytest.raises(StoreError, match="the race has gone on without a"):
            worker(shared(CONFIG, store, 4), ITEMS, [Entry("a", 3)])


def test_an_arm_runs_in_one_place_only(store: str) -> None:
    message = "a is in this race already, run by another worker"
    with crew(store, *four()[:2]), pytest.raises(InvalidInputError, match=message):
        worker(shared(CONFIG, store, 4), ITEMS, [Entry("a", 3), Entry("c", 3)])


def test_who_is_replaced_by_a_living_process_ends(store: str) -> None:
    message = "another process runs a now"
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
        worker(shared(config, store, arms), items, [Entry("b", 3)])


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
        worker(shared(CONFIG, store), ITEMS, [Entry("e", 3)])


@pytest.mark.parametrize("committed", [True, False])
def test_a_store_that_goes_in_the_middle_of_a_turn(
    store: str, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    with crew(store, *four()) as workers:
        one = workers[0]
        asked = one.wanted()
        real, times = one._log.append, []

        def append(connection: Any, steps: Any, first: int) -> None:
            real(connection, steps, first)
            if not times:
                times.append(1)
                if committed:
                    connection.commit()
                raise StoreDownError("gone")

        monkeypatch.setattr(one._log, "append", append)
        one.completed(asked[0].arm, asked[0].key, 1.0)
        assert one.lanes[0].tally.readings == 1
        assert asked[0] not in one.wanted()
        workers[1].look()
        assert workers[1].evaluations == one.evaluations == 1


def test_an_arm_that_was_taken_for_silent_before_the_race_joins_again(store: str) -> None:
    first, *others = four()
    with crew(store, first, lease=0.8) as (one,):
        one._log._over.set()
        with crew(store, *others, lease=0.8) as workers:
            deadline = time.monotonic() + 60
            while workers[0].missing == 1 and not workers[0].begun and time.monotonic() < deadline:
                time.sleep(0.05)
                workers[0].look()
                if "a" not in workers[0]._worker_of:
                    break
            one.look()
            assert one.begun or "a" in one._worker_of


def test_an_arm_leaves_once(store: str) -> None:
    with crew(store, *four()) as workers:
        workers[0].look()
        workers[0].leave(0, "its task ended early")
        steps = workers[0]._seen
        workers[0].leave(0, "its task ended early")
        assert workers[0]._seen == steps


def test_retries_of_an_arm_that_was_cut_off_count(store: str) -> None:
    with crew(store, *four()) as workers:
        had = workers[0].wanted()
        workers[0].close()
        again = worker(shared(CONFIG, store), ITEMS, [Entry("a", 3, unread=len(had) + 4)])
        assert again.evaluations == len(had) + 4
        workers[0] = again


def test_another_task_is_refused(store: str) -> None:
    config = shared(CONFIG, store)
    one = SharedRace(config, ITEMS, ["a"], about={"task": "geography"})
    with pytest.raises(StoreError, match="task = 'geography' there, 'history' here"):
        SharedRace(config, ITEMS, ["b"], about={"task": "history"})
    one.close()


def test_a_password_is_refused_since_hosts_log_what_is_typed() -> None:
    for url in ("postgresql://me:secret@db/x#y", "postgresql://db/x?password=secret#y"):
        with pytest.raises(InvalidInputError, match="PGPASSWORD") as caught:
            RaceConfig.of(budget=100, store=url, all_arms=2)
        assert "secret" not in str(caught.value)
