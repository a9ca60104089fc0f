from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest
from tests.audits.store.audits import Clock, audit, design, drawn

from evalbudget.audits.store import AuditStore
from evalbudget.audits.store._leases import Held
from evalbudget.errors import InvalidInputError
from evalbudget.store import Address


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(place: Callable[[str], Address], clock: Clock) -> Iterator[AuditStore]:
    with audit(place("a"), clock=clock) as store:
        yield store


def at(store: AuditStore, session: str, **options: object) -> int | None:
    task = store.leases.next(session, "ann", **options)  # type: ignore[arg-type]
    return None if task is None else task.draw


def test_draws_are_handed_out_in_draw_order_each_to_one_session(store: AuditStore) -> None:
    assert [at(store, session) for session in "abcdefg"] == [0, 1, 6, 7, 12, 13, None]
    assert store.leases.count() == 6
    assert at(store, "c") == 6  # a page that was loaded again
    store.labels.add(6, 5, "ann")
    assert at(store, "c") is None
    store.leases.release("b")
    assert at(store, "c") == 1


def test_a_silent_session_loses_its_draw(tmp_path: Path, clock: Clock) -> None:
    with audit(tmp_path / "a.audit", clock=clock) as store:  # nobody moves a server's clock
        assert at(store, "gone", seconds=100) == 0
        assert at(store, "here", seconds=100) == 1
        clock.now += 90
        assert store.leases.renew(1, "here", seconds=100) == Held(True, False)
        clock.now += 20
        assert store.leases.renew(0, "gone") == Held(False, False)
        assert at(store, "other") == 0
        assert at(store, "here") == 1
        store.labels.add(0, 5, "gone")  # its label comes late, and is the first one: it counts
        assert store.leases.renew(0, "other") == Held(False, True)
        assert at(store, "other") == 6


def test_draws_put_off_come_back_at_the_end(store: AuditStore) -> None:
    assert at(store, "a") == 0
    assert at(store, "a", skip=[0]) == 1
    assert at(store, "a", skip=[0, 1]) == 6
    assert at(store, "b") == 0
    store.leases.release("b")
    for draw in (6, 7, 12, 13):
        store.labels.add(draw, 5, "ann")
    assert at(store, "a", skip=[0, 1]) == 0
    assert at(store, "a", skip=[0, 1]) == 0  # what is left, again and again rather than nothing
    with pytest.raises(InvalidInputError, match="name"):
        store.leases.next("x", " ")


def test_two_connections_never_get_the_same_draw(place: Callable[[str], Address]) -> None:
    with AuditStore.create(place("a"), design()) as store:
        store.draws.append(drawn(range(30), wanted=lambda item: True))
    taken: list[list[int]] = [[], [], []]

    def work(number: int) -> None:
        with AuditStore.open(place("a")) as mine:
            while (task := mine.leases.next(f"s{number}", f"labeller {number}")) is not None:
                taken[number].append(task.draw)
                mine.labels.add(task.draw, 5, f"labeller {number}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert sorted(chain(*taken)) == list(range(60))
    assert all(part == sorted(part) for part in taken)
    with AuditStore.open(place("a")) as store:
        assert {label.kind.value for label in store.labels.history()} == {"first"}
        assert store.progress().outstanding == 0
