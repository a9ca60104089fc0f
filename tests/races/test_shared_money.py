"""Arms of one race in several processes, with one budget in money: the cap holds over all of them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from tests.claims import variant
from tests.races.test_shared_race import cells_bought

from evalbudget.book import _turns
from evalbudget.book._turn import Turn
from evalbudget.budget import Budget, Unit
from evalbudget.errors import InvalidInputError, StoreDownError, StoreError
from evalbudget.prices import Price, Tariff, Usage
from evalbudget.races import Entry, Key, KnownCell, RaceConfig, RacePurchase, SharedBill, leaderboard_of
from evalbudget.run import Bill, Hold, bill_on_file

ITEMS = [f"item {i}" for i in range(12)]
ARMS = ("a", "b", "c")
CAP = 4000.0
TOKENS = Tariff(Unit.TOKENS)
CONFIG = RaceConfig(budget="4000tok", seed=2)
MOST = 150
"""Tokens of one call."""


@dataclass
class Process:
    """One that runs arms of a race."""

    race: RacePurchase
    bill: SharedBill


def joined(
    store: str,
    *arms: str,
    config: RaceConfig = CONFIG,
    tariff: Tariff = TOKENS,
    models: Sequence[str] = (),
    known: Mapping[str, Sequence[KnownCell]] = MappingProxyType({}),
    **more: Any,
) -> Process:
    """A process that runs these arms."""
    there = replace(config, store=store, all_arms=len(ARMS))
    bill = SharedBill(there.resolve_budget(1, 1), tariff, risk=config.risk)
    race = RacePurchase(
        *(there, arms, ITEMS),
        widths=[3] * len(arms),
        about={"task": "t"},
        cost_of=bill.of_sample,
        bill=bill,
        **more,
    )
    entries = [Entry(arm, known.get(arm, ())) for arm in arms]
    race.join(entries, prices=tariff.told_of(models), bill=bill)
    return Process(race, bill)


@contextmanager
def crew(store: str, **more: Any) -> Iterator[list[Process]]:
    """A process for each arm."""
    found: list[Process] = []
    try:
        found += [joined(store, arm, **more) for arm in ARMS]
        yield found
    finally:
        for each in found:
            each.race.close()


@dataclass
class Run:
    """A sample that is under way, of one to four calls."""

    arm: int
    key: Key
    name: str
    calls: int
    hold: Hold | None = None


@dataclass
class Host:
    """What runs samples of one arm, and what its log has."""

    arm: str
    race: RacePurchase
    bill: Bill
    rng: random.Random
    runs: list[Run] = field(default_factory=list)
    known: list[KnownCell] = field(default_factory=list)
    names: int = 0
    billed: float = 0.0

    def begins(self) -> None:
        """Take what the race wants of it."""
        for asked in self.race.wanted():
            self.names += 1
            name = f"{self.arm} {asked.key} {self.names} {self.rng.random()}"
            self.runs.append(Run(asked.arm, asked.key, name, self.rng.randint(1, 4)))

    def goes_on(self) -> None:
        """A call is sent, or comes back, or a sample ends."""
        if not self.runs:
            return
        run = self.rng.choice(self.runs)
        if run.hold is not None:
            self._settle(run)
        elif run.calls:
            run.hold = self.bill.reserve("m", MOST - 50, 50, sample=run.name)
            run.calls -= run.hold is not None
            if run.hold is None and not self.bill.may_fit("m", MOST - 50, 50):
                self.runs.remove(run)
                self.race.unaffordable(run.arm, run.key)
        else:
            self.runs.remove(run)
            value = None if self.rng.random() < 0.05 else float(self.rng.random() < 0.5)
            error = "boom" if value is None else None
            self.known.append(KnownCell(run.key, value, 1, error=error, sample=run.name))
            self.race.completed(run.arm, run.key, value, error=error, sample=run.name)

    def _settle(self, run: Run) -> None:
        assert run.hold is not None
        what = self.rng.random()
        cost = self.rng.randint(1, MOST)
        if what < 0.1 and not self.bill.again(run.hold):
            what = 1.0
        if what < 0.1:  # sent twice, and both are billed
            self.billed += MOST
        if what < 0.8:
            self.billed += cost
            self.bill.settle(run.hold, Usage(input=cost))
        elif what < 0.9:
            self.billed += MOST
            self.bill.lose(run.hold)
        else:
            self.bill.release(run.hold)
        run.hold = None

    def dies(self) -> None:
        """Without a word; what was sent may be billed in full."""
        self.billed += MOST * sum(run.hold is not None for run in self.runs)
        self.race.book._workers.close()
        self.race.book._db.close()
        self.runs.clear()


def host(process: Process, arm: str, seed: int) -> Host:
    return Host(arm, process.race, process.bill, random.Random(f"{arm} {seed}"))


@pytest.mark.parametrize(
    ("store", "risk"),
    [variant("sqlite", 0.0), ("sqlite", 0.2), variant("postgresql", 0.0), variant("postgresql", 0.2)],
    indirect=["store"],
)
def test_they_take_the_decisions_of_one_process_with_one_bill(store: str, risk: float) -> None:
    config = replace(CONFIG, risk=risk)
    bill = Bill(Budget(CAP, Unit.TOKENS), TOKENS, risk=risk)
    one = RacePurchase(config, ARMS, ITEMS, widths=[3] * 3, cost_of=bill.of_sample, bill=bill)
    rng = random.Random(7)
    with crew(store, config=config) as workers:
        workers[0].race.look()
        hosts = [host(each, arm, 1) for each, arm in zip(workers, ARMS, strict=True)]
        twins = [Host(arm, one, bill, random.Random(f"{arm} 1")) for arm in ARMS]
        given: dict[str, list[Run]] = {arm: [] for arm in ARMS}
        while True:
            each = rng.randrange(3)
            for asked in one.wanted():  # for whichever host
                given[ARMS[asked.arm]].append(Run(asked.arm, asked.key, "", 0))
            hosts[each].begins()
            if one.finished:
                break
            for theirs in hosts[each].runs[len(twins[each].runs) :]:
                due = given[ARMS[each]].pop(0)
                assert (due.arm, due.key) == (theirs.arm, theirs.key)
                twins[each].runs.append(replace(theirs))
            twins[each].rng.setstate(hosts[each].rng.getstate())
            hosts[each].goes_on()
            workers[each].race.look()
            twins[each].goes_on()
            for worker in workers:
                worker.race.look()
            assert (bill.spent, bill.held) == (hosts[each].bill.spent, hosts[each].bill.held)
        for worker in workers:
            worker.race.turn()
            assert worker.race.finished
            assert cells_bought(worker.race) == cells_bought(one)
            assert worker.bill.text == bill.text
            found = leaderboard_of(worker.race, bill=worker.bill)
            assert found.as_json == leaderboard_of(one, bill=bill).as_json
        assert bill.spent > 0.8 * CAP
        assert risk or sum(each.billed for each in hosts) <= bill.spent <= CAP


@pytest.mark.parametrize(
    ("store", "seed", "defers"),
    [
        ("sqlite", 0, False),
        variant("sqlite", 1, True),
        variant("postgresql", 0, False),
        ("postgresql", 1, True),
    ],
    indirect=["store"],
)
def test_the_cap_holds_whatever_happens_to_workers(store: str, seed: int, defers: bool) -> None:
    rng = random.Random(seed)
    with crew(store, defers=defers) as workers:
        hosts = [host(each, arm, seed) for each, arm in zip(workers, ARMS, strict=True)]
        dead, deaths = 0.0, 0
        for step in range(6000):
            at = rng.randrange(3)
            one = hosts[at]
            if step % 40 == 39 and deaths < 4:
                one.dies()
                deaths += 1
                workers[at] = joined(store, one.arm, defers=defers, known={one.arm: one.known})
                again = host(workers[at], one.arm, rng.randrange(10**6))
                dead += one.billed
                hosts[at] = replace(again, known=one.known, names=one.names)
            if defers:
                workers[at].race.turn()
            one = hosts[at]
            one.begins()
            one.goes_on()
            assert dead + sum(each.billed for each in hosts) <= CAP
            if all(
                worker.race.begun and worker.race.finished and worker.race.book.is_told for worker in workers
            ):
                break
        for worker in workers:
            worker.race.look()
        bills = [worker.bill for worker in workers]
        assert deaths > 1
        boards = [leaderboard_of(worker.race, bill=worker.bill).as_json for worker in workers]
        assert boards[0] == boards[1] == boards[2]
        assert workers[0].race.finished
        for bill in bills:
            assert (bill.under_way, bill.held) == (0, 0.0)
            assert dead + sum(each.billed for each in hosts) <= bill.spent <= CAP
            assert bill.spent > 0.8 * CAP
        assert boards[0]["paid"] == bills[0].spent


def test_calls_of_a_worker_that_fell_silent_count_at_their_most(store: str) -> None:
    with crew(store, lease=0.8) as workers:
        one, two = host(workers[0], "a", 1), host(workers[1], "b", 1)
        workers[0].race.turn()
        assert one.bill.reserve("m", 100, 50, sample="s") is not None
        workers[0].race.book._workers.close()
        workers[1].race.look()
        assert (two.bill.spent, two.bill.under_way) == (0.0, 1)
        deadline = time.monotonic() + 60
        while workers[1].race.lanes[0].left is None and time.monotonic() < deadline:
            time.sleep(0.05)
            workers[1].race.look()
        assert (two.bill.spent, two.bill.under_way) == (150.0, 0)
        with pytest.raises(StoreError, match="gone on without a"):
            one.bill.reserve("m", 100, 50, sample="s")


def test_what_is_told_waits_for_a_turn(store: str) -> None:
    with crew(store, defers=True) as workers:
        for worker in workers:
            worker.race.turn()
        one, two = host(workers[0], "a", 1), host(workers[1], "b", 1)
        one.begins()
        assert one.runs
        run = one.runs[0]
        hold = one.bill.reserve("m", 100, 50, sample=run.name)
        assert hold is not None
        assert one.bill.settle(hold, Usage(input=10)) == 10.0
        workers[0].race.completed(run.arm, run.key, 1.0, sample=run.name)
        workers[1].race.turn()
        assert (two.bill.spent, two.bill.held) == (0.0, 150.0)
        one.begins()
        assert not any(each.key == run.key for each in one.runs[1:] if each is not run)
        workers[0].race.turn()
        workers[1].race.turn()
        assert (two.bill.spent, two.bill.held) == (10.0, 0.0)
        assert workers[1].race.lanes[run.arm].tally.spent == 10.0


def test_room_is_kept_from_others_until_its_process_clears_it_or_is_gone(store: str) -> None:
    with crew(store, lease=0.8) as workers:
        one, two = workers[0].bill, workers[1].bill
        (first,) = one.reserve_all("m", [(1000, 0, "s")], follows={"s": [("j", 2000.0)]})
        one.settle(first, Usage(input=1000))
        assert not two.reserve_all("m", [(1001, 0, "t")])
        assert (two.room, two.room_of_others) == (0.0, 2000.0)
        (other,) = two.reserve_all("m", [(1000, 0, "t")])
        (judge,) = one.reserve_all("j", [(2000, 0, "s")], role="judge", follows={"s": ()})
        one.settle(judge, Usage(input=500))
        two.settle(other, Usage(input=1000))
        (more,) = one.reserve_all("m", [(100, 0, "u")], follows={"u": [("j", 1400.0)]})
        one.settle(more, Usage(input=100))
        workers[0].race.look()
        workers[1].race.look()
        assert (two.free, two.room_of_others, two.spent) == (0.0, 1400.0, 2600.0)
        one.clear_room("u")
        workers[0].race.look()
        workers[1].race.look()
        assert (two.free, two.room_of_others) == (1400.0, 0.0)
        (last,) = one.reserve_all("m", [(100, 0, "v")], follows={"v": [("j", 1300.0)]})
        one.release(last)
        workers[0].race.look()
        workers[1].race.look()
        assert (two.free, two.room_of_others) == (0.0, 1400.0)
        workers[0].race.close()
        deadline = time.monotonic() + 60
        while two.room_of_others and time.monotonic() < deadline:
            time.sleep(0.05)
            workers[1].race.look()
        assert (two.free, two.room_of_others) == (1400.0, 0.0)


def test_room_of_a_refused_call_is_kept_once_however_often_the_store_is_read(store: str) -> None:
    with crew(store) as workers:
        bill = workers[0].bill
        (first,) = bill.reserve_all("m", [(1000, 0, "s")], follows={"s": [("j", 500.0)]})
        bill.release(first)
        for _ in range(3):
            workers[0].race.book._is_stale = True  # a turn whose end is not known
            workers[0].race.look()
        assert (bill.held, bill.room) == (0.0, 1500.0)


@pytest.mark.parametrize("committed", [True, False])
def test_a_store_that_goes_in_the_middle_of_a_turn(
    store: str, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    with crew(store, defers=True) as workers:
        for worker in workers:
            worker.race.turn()
        one = host(workers[0], "a", 1)
        one.begins()
        run = one.runs[0]
        real, goes = Turn.write, [False]

        def write(turn: Turn) -> None:
            breaks = goes.pop()
            if committed or not breaks:
                real(turn)
            if breaks:
                if committed:
                    turn.connection.connection.commit()
                raise StoreDownError("gone")
            goes.append(False)

        monkeypatch.setattr(Turn, "write", write)
        goes[:] = [False, True]
        hold = one.bill.reserve("m", 100, 50, sample=run.name)
        goes[:] = [False, True]
        assert hold is not None
        assert one.bill.again(hold)
        one.bill.settle(hold, Usage(input=10))
        workers[0].race.completed(run.arm, run.key, 1.0, sample=run.name)
        goes[:] = [False, True]
        workers[0].race.turn()
        workers[1].race.turn()
        for worker in workers[:2]:
            assert (worker.bill.spent, worker.bill.held) == (160.0, 0.0)
            assert worker.race.lanes[run.arm].tally.readings == 1
            assert worker.race.lanes[run.arm].tally.spent == 160.0


def _breaks_once(process: Process, monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[], object]) -> None:
    """The next turn is rolled back, and others do something before the one that follows it."""
    book = process.race.book
    real, anew = Turn.write, book._look_anew

    def look_anew() -> None:
        monkeypatch.setattr(book, "_look_anew", anew)
        meanwhile()
        anew()

    def write(turn: Turn) -> None:
        monkeypatch.setattr(Turn, "write", real)
        monkeypatch.setattr(book, "_look_anew", look_anew)
        raise StoreDownError("gone")

    monkeypatch.setattr(Turn, "write", write)


@pytest.fixture
def two(store: str) -> Iterator[tuple[Process, Process]]:
    """Of a race that has begun."""
    with crew(store) as workers:
        for each in workers:
            each.race.turn()
        yield workers[0], workers[1]


def test_a_call_that_was_rolled_back_begins_under_another_number(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    theirs: list[Hold | None] = []
    _breaks_once(one, monkeypatch, lambda: theirs.append(other.bill.reserve("m", 100, 50, sample="y")))
    mine = one.bill.reserve("m", 100, 50, sample="x")
    assert mine is not None
    assert theirs[0] is not None
    one.bill.settle(mine, Usage(input=1))
    one.race.turn()
    other.bill.settle(theirs[0], Usage(input=150))
    for each in (other, one):
        each.race.turn()
        assert (each.bill.spent, each.bill.under_way) == (151.0, 0)


def test_a_call_that_fitted_in_a_turn_that_was_rolled_back_is_not_sent(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    _breaks_once(one, monkeypatch, lambda: other.bill.reserve("m", 3000, 900, sample="y"))
    assert one.bill.reserve("m", 100, 50, sample="x") is None
    assert one.bill.held == 3900.0


def test_a_call_that_fits_after_a_turn_that_was_rolled_back_is_sent(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    large = other.bill.reserve("m", 3000, 900, sample="y")
    assert large is not None
    one.race.turn()

    def ends() -> None:
        other.bill.settle(large, Usage(input=1))
        other.race.turn()

    _breaks_once(one, monkeypatch, ends)
    one.bill._look_again = 0.0
    assert one.bill.reserve("m", 100, 50, sample="x") is not None
    assert one.bill.held == 150.0


def test_what_is_known_stays_while_a_broken_turn_waits_for_the_store(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    assert other.bill.reserve("m", 3000, 900, sample="y") is not None
    one.race.turn()
    database, seen = one.race.book._db, list[Any]()
    real = database.write

    def write(**given: Any) -> Any:
        seen.append((one.bill.may_fit("m", 100, 50), one.bill.held, one.race.left_out))
        return real(**given)

    _breaks_once(one, monkeypatch, lambda: monkeypatch.setattr(database, "write", write))
    one.race.look()
    assert seen == [(True, 3900.0, set())]


def test_a_look_that_loses_the_server_looks_again(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with crew(store) as workers:
        workers[0].race.look()
        real, goes = _turns.look, [True]

        def look(copy: Any, asked: Any) -> None:
            real(copy, asked)
            if goes and goes.pop():
                raise StoreDownError("gone")

        monkeypatch.setattr(_turns, "look", look)
        workers[1].race.look()
        assert not goes
        assert workers[1].race.begun


def test_prices_are_the_same_for_all(store: str) -> None:
    config = replace(CONFIG, budget="$2")
    cheap, dear = (Tariff(Unit.USD, {"judge": Price(input=price, output=1.0)}) for price in (1.0, 2.0))
    first = joined(store, "a", config=config, tariff=cheap, models=["judge"])
    with pytest.raises(InvalidInputError, match="another worker has other prices of judge"):
        joined(store, "b", config=config, tariff=dear, models=["judge"])
    joined(store, "b", config=config, tariff=dear).race.close()  # it asks no judge
    first.race.close()
    assert TOKENS.told_of(["judge"]) == {}


def test_answers_of_another_race_are_not_on_the_bill(store: str) -> None:
    with pytest.raises(InvalidInputError, match="goes on from logs of another race"):
        joined(store, "a", known={"a": [KnownCell((ITEMS[0], 1), 1.0, 1)]})


def test_another_risk_is_refused_and_another_price_file_not(store: str, tmp_path: Path) -> None:
    prices = tmp_path / "prices.yaml"
    prices.write_text("m: {max_output: 5}\n")
    first = joined(store, "a")
    with pytest.raises(StoreError, match=r"risk = '0.0' there, '0.1' here"):
        joined(store, "b", config=replace(CONFIG, risk=0.1))
    joined(store, "b", config=replace(CONFIG, prices=str(prices))).race.close()
    first.race.close()


def test_what_came_back_is_told_though_ctrl_c_broke_a_turn_off(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(turn: object, *, anew: bool) -> None:
        raise KeyboardInterrupt

    with crew(store, defers=True) as workers:
        for each in workers:
            each.race.turn()
        one = host(workers[0], "a", 1)
        one.begins()
        run = one.runs[0]
        held = one.bill.reserve("m", 100, 50, sample=run.name)
        assert held is not None
        one.bill.settle(held, Usage(input=10))
        workers[0].race.completed(run.arm, run.key, 1.0, sample=run.name)
        with monkeypatch.context() as patch:
            patch.setattr(workers[0].bill, "take_in", pressed)
            with pytest.raises(KeyboardInterrupt):
                workers[0].race.turn()
        workers[0].race.close()
        workers[1].race.look()
        assert (workers[1].bill.spent, workers[1].bill.held) == (10.0, 0.0)
        assert workers[1].race.lanes[0].tally.readings == 1


def test_prices_of_who_left_before_anything_was_bought_bind_nobody(store: str) -> None:
    config = replace(CONFIG, budget="$2")
    cheap, dear = (Tariff(Unit.USD, {"judge": Price(input=p, output=1.0)}) for p in (1.0, 2.0))
    given: dict[str, Any] = {"config": config, "models": ["judge"], "lease": 0.8}
    joined(store, "a", tariff=cheap, **given).race.close()
    joined(store, "a", tariff=dear, **given).race.close()  # in its place
    with pytest.raises(InvalidInputError, match="other prices of judge"):
        joined(store, "b", tariff=cheap, **given)
    other = joined(store, "b", tariff=dear, **given | {"models": []})
    deadline = time.monotonic() + 60
    while other.race.missing < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
        other.race.look()
    joined(store, "c", tariff=cheap, **given).race.close()  # nobody is left who had others
    other.race.close()


def test_calls_of_a_dead_worker_count_after_all_arms_have_left(store: str) -> None:
    with crew(store, lease=0.8, defers=True) as workers:
        for each in workers:
            each.race.turn()
        bill, dead = workers[0].bill, workers[1].bill
        assert dead.reserve("m", int(CAP) - 200, 50, sample="b") is not None
        for arm, each in enumerate(workers):
            each.race.leave(arm, "cancelled")
            each.race.turn()
        workers[1].race.book._workers.close()
        workers[0].race.turn()
        deadline = time.monotonic() + 60
        while bill.under_way and time.monotonic() < deadline:
            time.sleep(0.05)
            bill.look()
        assert bill.under_way == 0
        assert bill.spent == CAP - 150
        assert [lane.left for lane in workers[0].race.lanes] == ["cancelled"] * 3


def test_a_copy_can_be_read_after_several_threads_and_beside_a_new_store(store: str, tmp_path: Path) -> None:
    cap, path = Budget(1e6, Unit.TOKENS), tmp_path / "a.bill"
    with closing(bill_on_file(path, cap, TOKENS)) as before:
        held = before.reserve("m", 100, 50)
        assert held is not None
        before.settle(held, Usage(input=10))
    process = joined(store, *ARMS, config=replace(CONFIG, budget="1000000tok"))
    process.bill.copy_to(bill_on_file(path, cap, TOKENS))

    def buy(thread: int) -> None:
        for n in range(20):
            hold = process.bill.reserve("m", 10, 5, sample=f"{thread} {n}")
            assert hold is not None
            assert process.bill.again(hold)
            process.bill.settle(hold, Usage(input=1, output=1))

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(buy, range(6)))
    process.race.close()
    process.bill.close()
    with closing(bill_on_file(path, cap, TOKENS)) as copy:
        assert copy.spent == 10 + process.bill.spent == 10 + 6 * 20 * (15 + 2)


def test_a_copy_that_cannot_be_written_leaves_the_bill_as_it_is(store: str) -> None:
    class Full(Bill):
        def _once(self, act: object) -> Any:
            raise OSError("disk full")

    with crew(store, defers=True) as workers:
        for each in workers:
            each.race.turn()
        bill, other = workers[0].bill, workers[1].bill
        bill.copy_to(copy := Bill(Budget(CAP, Unit.TOKENS), TOKENS))
        held = bill.reserve("m", 100, 50, sample="s")
        assert held is not None
        copy.__class__ = Full
        with pytest.raises(OSError, match="disk full"):
            bill.settle(held, Usage(input=10))
        workers[0].race.turn()
        workers[1].race.look()
        assert (other.held, other.spent) == (0.0, 10.0)
