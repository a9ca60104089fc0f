"""Several workers of one purchase decide as one process; nothing is lost, bought twice or overspent."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evalbudget import Budget, Cell, Design, Reading, Request, Sampler
from evalbudget.errors import InvalidInputError, ReplayError, SamplerError, StoreDownError, StoreError
from evalbudget.repeats.samplers import EBBernstein, RobinHood, Uniform
from evalbudget.run import Purchase
from evalbudget.run._shared_purchase import SharedPurchase
from evalbudget.testing import gaussian
from postgresql_server import Server

DESIGN = Design.of_items(6)
SAMPLERS: dict[str, Callable[[], Sampler]] = {
    "uniform": lambda: Uniform(DESIGN, seed=3),
    "eb-bernstein": lambda: EBBernstein(DESIGN, seed=3),
    "robin-hood": lambda: RobinHood(DESIGN, seed=3),
}


@contextmanager
def workers(
    n: int, store: str, make: Callable[[], Sampler] = SAMPLERS["uniform"], budget: float = 60, **more: float
) -> Iterator[list[SharedPurchase]]:
    """So many, in one process."""
    crew = [SharedPurchase(make(), Budget(budget), store, **more) for _ in range(n)]
    try:
        yield crew
    finally:
        for worker in crew:
            worker.close()


def score(request: Request) -> Reading:
    if request.id % 11 == 7:
        return Reading(request, None, 1.0, "down")
    return Reading(request, min(1.0, max(0.0, gaussian(request.cell))))


@pytest.mark.parametrize("name", SAMPLERS)
def test_they_take_the_decisions_of_one_process(store: str, name: str) -> None:
    make, rng = SAMPLERS[name], random.Random(name)
    alone = Purchase(make(), Budget(60))
    in_flight: list[tuple[SharedPurchase, Request]] = []
    with workers(4, store, make) as crew:
        while True:
            worker = rng.choice(crew)
            worker.look()
            if not in_flight and worker.finished:
                break
            if in_flight and rng.random() < 0.5:
                owner, request = in_flight.pop(rng.randrange(len(in_flight)))
                owner.tell(score(request))
                alone.tell(score(request))
            elif len(in_flight) < 7:
                theirs = worker.buy(2)
                assert list(theirs) == list(alone.buy(2))
                in_flight += [(worker, request) for request in theirs]
        for worker in crew:
            worker.look()
            assert worker.journal.events == alone.journal.events
            assert (worker.ledger.spent, worker.ledger.promised) == (alone.ledger.spent, 0.0)
            assert worker.tally == alone.tally
            assert worker.stop_reason == alone.stop_reason


def test_promises_of_all_count(store: str) -> None:
    with workers(3, store, budget=10) as (one, two, three):
        assert len(one.buy(6)) == 6
        assert len(two.buy(6)) == 4
        assert three.buy(6) == []
        assert (three.outstanding, three.finished, three.ledger.free) == (10, False, 0.0)


def test_what_a_worker_had_when_it_left_counts_and_is_asked_again(store: str) -> None:
    with workers(2, store, budget=10) as (one, two):
        first, second = one.buy(2)
        one.tell(score(first))
        one.close()
        until(lambda: two.look() or two.ledger.spent == 2.0)
        again = two.buy(10)
        assert again[0] == second
        assert len(again) == 8  # 10, less one score and one call that nobody heard of
        for request in again:
            two.tell(Reading(request, 1.0))
        assert (two.ledger.spent, two.ledger.promised, two.finished) == (10.0, 0.0, True)
        assert sum(two.tally.unread.values()) == 1.0
        assert two.tally.readings == 9


def test_what_came_back_too_late_is_used_and_paid_once(store: str) -> None:
    with workers(2, store, budget=20, lease=0.8) as (one, two):
        (late,) = one.buy(1)
        silence(one)
        (again,) = until(lambda: [each for each in two.buy(1) if each == late])
        assert two.ledger.spent == 1.0
        one.tell(Reading(late, 0.25, 0.5))
        two.look()
        assert two.ledger.spent == 0.5
        assert two.journal.readings[-1].value == 0.25
        assert again.id in two.flights  # the second call is still under way, and counts until it is back
        two.tell(Reading(again, 0.75, 1.0))
        assert again.id not in two.flights
        assert two.ledger.spent == 1.5
        assert two.ledger.promised == sum(flight.promised for flight in two.flights.values())
        assert [reading.value for reading in two.journal.readings if reading.request == late] == [0.25]
        one.look()
        assert one.ledger.spent == 1.5
        assert (
            one.tally.unread
            == two.tally.unread
            == {
                "cut off, or no reply that the host could read": 0.0,
                "run again by an operator: its first score counts": 1.0,
            }
        )


def test_what_came_back_after_another_had_its_answer_counts_what_it_cost(store: str) -> None:
    with workers(2, store, budget=20, lease=0.8) as (one, two):
        (late,) = one.buy(1)
        silence(one)
        until(lambda: [each for each in two.buy(1) if each == late])
        two.tell(Reading(late, 0.75, 1.0))
        assert two.ledger.spent == 2.0  # the call of the silent one counts at the most that it can cost
        one.tell(Reading(late, 0.25, 0.5))
        two.look()
        assert one.ledger.spent == two.ledger.spent == 1.5
        assert late.id not in two.flights
        assert [reading.value for reading in two.journal.readings if reading.request == late] == [0.75]


@pytest.mark.parametrize("how", ["withdrawn", "silent"])
def test_what_has_its_reading_is_bought_by_nobody_else(store: str, how: str) -> None:
    with workers(3, store, budget=400, lease=0.8) as (one, two, three):
        (late,) = one.buy(1)
        silence(one)
        (again,) = until(lambda: [each for each in two.buy(1) if each == late])
        one.tell(Reading(late, 0.25, 1.0))
        two.look()
        if how == "withdrawn":
            two.withdraw(again)
        else:
            silence(two)
        until(lambda: (three.look(), late.id not in three.flights)[1])
        assert late not in three.buy(400)
        assert [reading.value for reading in three.journal.readings if reading.request == late] == [0.25]


def test_what_came_back_before_another_took_it_is_not_asked_again(store: str) -> None:
    with workers(2, store, budget=20, lease=0.8) as (one, two):
        (late,) = one.buy(1)
        silence(one)
        until(lambda: two.look() or two.ledger.spent == 1.0)
        one.tell(Reading(late, 0.25, 1.0))
        assert late not in two.buy(20)
        assert two.ledger.spent == 1.0


def test_a_worker_that_gives_signs_of_life_keeps_what_it_has(store: str) -> None:
    with workers(2, store, budget=20, lease=1.0) as (one, two):
        (held,) = one.buy(1)
        for _ in range(12):
            time.sleep(0.1)
            assert held not in two.buy(1)


def test_a_worker_of_the_same_name_replaces_the_dead_one(store: str) -> None:
    first = SharedPurchase(SAMPLERS["uniform"](), Budget(5), store, worker="pod-3")
    had = first.buy(2)
    second = SharedPurchase(SAMPLERS["uniform"](), Budget(5), store, worker="pod-3")
    assert list(second.buy(5))[:2] == list(had)
    assert second.ledger.spent == 2.0
    first.close()
    second.close()


@pytest.mark.parametrize("committed", [True, False])
def test_what_is_left_of_the_budget_is_paid_by_one_of_them(
    store: str, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    with workers(2, store, budget=10) as (one, two):
        lose_the_next_commit(one, monkeypatch, committed=committed)
        assert one.pays(6.0)
        assert not two.pays(6.0)
        assert (two.ledger.spent, two.tally.unread) == (6.0, one.tally.unread)


def test_withdrawn_requests_cost_nothing_and_go_to_others(store: str) -> None:
    with workers(2, store, budget=3) as (one, two):
        request = one.buy(1)[0]
        one.withdraw(request)
        assert two.buy(3)[0] == request
        assert two.ledger.spent == 0.0
        assert one.buy(1) == []
        two.withdraw(request)
        assert one.buy(1) == [request]  # whoever gave it back may take it again


def test_who_stops_stops_all_and_calls_without_reading_count(store: str) -> None:
    with workers(2, store, budget=30) as (one, two):
        one.pay(2.0)
        one.stop("enough")
        assert two.buy(1) == []
        assert (two.stopped, two.finished, two.ledger.spent) == ("enough", True, 2.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda: Uniform(DESIGN, seed=4), "seed = 3 there, 4 here"),
        (lambda: Uniform(Design.of_items(7), seed=3), "another design"),
        (lambda: EBBernstein(DESIGN, seed=3), "sampler = 'uniform' there"),
    ],
)
def test_a_worker_with_another_task_or_seed_is_refused(
    store: str, changed: Callable[[], Sampler], message: str
) -> None:
    with workers(1, store), pytest.raises(StoreError, match=message):
        SharedPurchase(changed(), Budget(60), store)


def test_another_budget_is_refused(store: str) -> None:
    with (
        workers(1, store),
        pytest.raises(StoreError, match="budget = '60 scores' there, '61 scores' here"),
    ):
        SharedPurchase(SAMPLERS["uniform"](), Budget(61), store)


def test_another_version_is_refused(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with workers(1, store):
        monkeypatch.setattr("evalbudget.run._shared_purchase.__version__", "9.9")
        with pytest.raises(
            StoreError, match=r"and this is 9\.9: workers of two versions might decide differently"
        ):
            SharedPurchase(SAMPLERS["uniform"](), Budget(60), store)


def test_a_sampler_that_decides_otherwise_is_found_out(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with workers(2, store) as (one, two):
        one.buy(3)
        monkeypatch.setattr(Uniform, "_next", lambda self, eligible: Cell(item=5, epoch=self.asked))
        with pytest.raises(ReplayError, match="run the same code everywhere"):
            two.buy(1)


def test_a_reading_of_nothing_that_was_asked_is_refused_and_harms_nobody(store: str) -> None:
    with workers(2, store) as (one, two):
        (request,) = one.buy(1)
        with pytest.raises(SamplerError, match="never asked"):
            one.tell(Reading(Request(17, Cell(item=1)), 1.0))
        one.tell(score(request))
        two.look()
        assert two.ledger.spent == 1.0


@pytest.mark.parametrize("lease", [0.0, -1.0, float("nan")])
def test_a_lease_is_above_zero(tmp_path: Path, lease: float) -> None:
    with pytest.raises(InvalidInputError, match="give more than 0"):
        SharedPurchase(SAMPLERS["uniform"](), Budget(60), tmp_path / "x.db", lease=lease)


def test_a_server_that_is_away_is_waited_for_and_what_came_back_is_told_later(postgresql: Server) -> None:
    store = f"{postgresql.url}#away"
    with workers(2, store) as (one, two):
        requests = one.buy(4)
        one._log._db.patience = two._log._db.patience = 0.2
        postgresql.stop()
        try:
            with pytest.raises(StoreDownError, match="cannot be reached"):
                one.tell(score(requests[0]))
            assert one.untold == (score(requests[0]),)
        finally:
            postgresql.start()
        one.tell(score(requests[1]))
        two.look()
        assert [reading.request for reading in two.journal.readings] == list(requests[:2])
        assert one.buy(1)[0].id == 4
        assert two.ledger.spent == 2.0


@pytest.mark.parametrize("committed", [True, False])
def test_a_server_that_goes_in_the_middle_of_a_turn(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    store = f"{postgresql.url}#middle{int(committed)}"
    with workers(2, store) as (one, two):
        requests = one.buy(3)
        lose_the_next_commit(one, monkeypatch, committed=committed)
        found = one.trade([score(requests[0])], 2)
        assert [request.id for request in found] == [3, 4]
        two.look()
        assert [reading.request.id for reading in two.journal.readings] == [0]
        assert two.outstanding == 4
        assert two.journal.events == one.journal.events


def test_what_another_took_is_not_withdrawn_from_it(store: str) -> None:
    with workers(2, store, budget=20, lease=0.8) as (one, two):
        (late,) = one.buy(1)
        silence(one)
        until(lambda: [each for each in two.buy(1) if each == late])
        promised = two.ledger.promised
        one.withdraw(late)  # it was never sent after all: only the call of the other one costs
        two.look()
        assert two.ledger.spent == 0.0
        assert two.ledger.promised == promised
        assert late.id in two.flights


@pytest.mark.parametrize("committed", [True, False])
def test_what_is_paid_is_paid_once(store: str, monkeypatch: pytest.MonkeyPatch, committed: bool) -> None:
    with workers(1, store) as (one,):
        (request,) = one.buy(1)
        lose_the_next_commit(one, monkeypatch, committed=committed)
        one.pay(2.0)
        assert one.ledger.spent == 2.0
        lose_the_next_commit(one, monkeypatch, committed=committed)
        one.withdraw(request)
        assert one.ledger.promised == 0.0


def test_stopped_with_requests_that_wait_it_is_finished(store: str) -> None:
    with workers(2, store) as (one, two):
        one.withdraw(one.buy(1)[0])
        one.stop("enough")
        two.look()
        assert two.finished
        assert two.buy(3) == []


def test_who_is_replaced_by_a_living_process_ends(store: str) -> None:
    first = SharedPurchase(SAMPLERS["uniform"](), Budget(5), store, worker="pod-3", lease=0.8)
    second = SharedPurchase(SAMPLERS["uniform"](), Budget(5), store, worker="pod-3", lease=0.8)
    with pytest.raises(StoreError, match="another process goes by the name pod-3 now"):
        until(lambda: first.look())  # type: ignore[func-returns-value]
    first.close()
    second.close()


def lose_the_next_commit(worker: SharedPurchase, monkeypatch: pytest.MonkeyPatch, *, committed: bool) -> None:
    real = type(worker._log).append

    def append(connection: object, steps: object, first: int) -> None:
        monkeypatch.setattr(worker._log, "append", lambda *given: real(worker._log, *given))
        real(worker._log, connection, steps, first)  # type: ignore[arg-type]
        if committed:
            connection.commit()  # type: ignore[attr-defined]
        raise StoreDownError("gone")

    monkeypatch.setattr(worker._log, "append", append)


def silence(worker: SharedPurchase) -> None:
    """No sign of life any more."""
    worker._log._over.set()
    worker._log._heart.join()


def until(found: Callable[[], object]) -> list[Request]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if result := found():
            return result  # type: ignore[return-value]
        time.sleep(0.05)
    raise AssertionError("it never came")


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (KeyError("x"), StoreError),
        (InvalidInputError("x"), StoreError),
        (OSError("x"), OSError),
        (RuntimeError("x"), RuntimeError),
        (MemoryError("x"), MemoryError),
    ],
)
def test_what_no_damage_raises_keeps_its_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: Exception, told: type[Exception]
) -> None:
    def fails(self: Sampler, readings: object) -> None:
        raise raised

    store = str(tmp_path / "a.sqlite")
    with workers(2, store) as (one, two):
        (request,) = one.buy(1)
        one.tell(score(request))
        monkeypatch.setattr(Uniform, "tell", fails)
        with pytest.raises(told) as found:
            two.look()
    assert type(found.value) is told
    assert (store in str(found.value)) == (told is StoreError)
