"""A book in memory, in a file and on a server: who has which cell, what it costs, what is planned when."""

from __future__ import annotations

import random
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.claims import replications

from evalbudget import Budget, Cell, Design, Reading, Request, Sampler
from evalbudget.book import LOST, Book
from evalbudget.book._statements import TOO_LATE
from evalbudget.book._turn import Turn
from evalbudget.errors import BudgetError, SamplerError, StoreError
from evalbudget.hooks._plugins import plugins
from evalbudget.races.samplers import Race
from evalbudget.repeats.samplers import EBBernstein, Uniform
from evalbudget.sampler import Kind
from evalbudget.store import Address
from evalbudget.testing import gaussian, play
from evalbudget_pairwise.samplers import PAIRS, duels

DESIGN = Design.of_items(6)
DESIGNS = {
    Kind.REPEATS: DESIGN,
    Kind.MODELS: Design(tuple(f"item {n}" for n in range(30)), ("a", "b", "c", "d")),
    PAIRS: duels([f"item {n}" for n in range(12)], ("a", "b", "c"), "judge"),
}
NAMES = [
    (kind, name)
    for kind, table in (
        (Kind.REPEATS, plugins().samplers),
        (Kind.MODELS, plugins().racers),
        (PAIRS, plugins().samplers_of(PAIRS)),
    )
    for name in sorted(table)
]
OF_EACH_KIND = ("auto", "race", "duel")
IDS = [f"{kind.value}-{name}" for kind, name in NAMES]


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Address | None:
    if request.param == "memory":
        return None
    if request.param == "sqlite":
        return Address(path=tmp_path / "book.db")
    server = request.getfixturevalue("postgresql")
    return Address.parse(f"{server.url}#b{random.getrandbits(48):x}")


def made(name: tuple[Kind, str]) -> Sampler:
    """One that can decide with the budget of these tests."""
    cls = plugins().sampler(name[1], name[0])
    own: dict[str, Any] = {"seed": 5}
    parameters = cls.__signature__.parameters
    own |= {key: value for key, value in {"t0": 2, "batch": 4, "pilot": 2}.items() if key in parameters}
    needs_budget = "budget" in parameters and parameters["budget"].default is parameters["budget"].empty
    return cls(DESIGNS[cls.kind], **own, **({"budget": 90} if needs_budget else {}))


def score(cell: Cell) -> float:
    return min(1.0, max(0.0, round(gaussian(cell) + 0.5)))


def buy(
    book: Book, n: int = 1, *, order: random.Random | None = None, fails: Callable[[Request], bool]
) -> None:
    """Trade with so many at once until nothing is left."""
    flying: list[Request] = []
    came: list[Reading] = []
    while not book.finished or flying or came:
        flying += book.trade(came, n - len(flying))
        came = []
        if flying:
            request = flying.pop(order.randrange(len(flying)) if order else 0)
            came = [reading(request, fails)]


def reading(request: Request, fails: Callable[[Request], bool]) -> Reading:
    return Reading(request, None, 1.0, "down") if fails(request) else Reading(request, score(request.cell))


def never(request: Request) -> bool:
    return False


def at_random(request: Request) -> bool:
    return random.Random(f"{request.cell} {request.id % 3}").random() < 0.2


@contextmanager
def opened(*given: Any, **named: Any) -> Iterator[Book]:
    book = Book(*given, **named)
    try:
        yield book
    finally:
        book.close()


def cells_of(book: Book) -> list[Cell]:
    return [reading.request.cell for reading in book.readings()]


@pytest.mark.parametrize("name", NAMES, ids=IDS)
def test_one_at_a_time_it_decides_as_a_sampler_that_is_asked(name: tuple[Kind, str]) -> None:
    with opened(made(name), Budget(90)) as book:
        buy(book, fails=never)
        expected = play(made(name), 90, score=score)
        assert [reading.request for reading in book.readings()] == [r.request for r in expected.readings]
        assert [reading.value for reading in book.readings()] == [r.value for r in expected.readings]


@pytest.mark.parametrize(
    ("where", "name"),
    [
        *(("memory", name) for name in NAMES),
        *((kept, name) for kept in ("sqlite", "postgresql") for name in NAMES if name[1] in OF_EACH_KIND),
    ],
    indirect=["where"],
    ids=str,
)
def test_the_same_wherever_it_is_kept_and_however_often_it_is_left(
    name: tuple[Kind, str], where: Address | None
) -> None:
    with opened(made(name), Budget(60)) as book:
        buy(book, fails=at_random)
        expected = book.readings()
    left = False
    while not left:
        with opened(made(name), Budget(60), where) as book:
            for n in range(12 if where is not None and where.path else 60):  # nothing is under way when left
                if where is None:
                    book._is_stale = n % 4 == 3  # all columns are read again
                book.trade([reading(request, at_random) for request in book.trade((), 1)], 0)
            left = book.finished
            assert not left or book.readings() == expected


@pytest.mark.parametrize(
    ("name", "how"),
    [
        *((name, "some") for name in NAMES if plugins().sampler(name[1], name[0]).waits_for_all),
        *((name, how) for name in NAMES if name[1] in OF_EACH_KIND[1:] for how in ("most", "down")),
    ],
    ids=str,
)
def test_who_answers_first_decides_nothing_where_rounds_wait_for_all(
    name: tuple[Kind, str], how: str, tmp_path: Path
) -> None:
    def fails(request: Request) -> bool:  # by the cell and its try, not by when it is asked
        tries[request.cell] = tries.get(request.cell, 0) + 1
        if how == "down":  # one always, one from some item on
            return request.cell.model == 1 or (request.cell.model == 2 and request.cell.item % 3 > 0)
        return (
            random.Random(f"{request.cell} {tries[request.cell]}").random() < {"some": 0.2, "most": 0.6}[how]
        )

    found, budget = [], 100 if how == "some" else 180
    for seed in range(replications(2, 5)):
        tries: dict[Cell, int] = {}
        where = Address(path=tmp_path / "shared.db") if seed == 1 else None
        with opened(made(name), Budget(budget), where) as book:
            crew = [book] if where is None else [book, Book(made(name), Budget(budget), where)]
            buy_by(crew, 1 + 10 * seed, random.Random(seed), fails)
            known = book.cells()
            found.append(
                [known.model.tolist(), known.item.tolist(), known.tries.tolist(), known.state.tolist()]
            )
            for other in crew[1:]:
                other.close()
    assert found.count(found[0]) == len(found)


def buy_by(crew: list[Book], n: int, order: random.Random, fails: Callable[[Request], bool]) -> None:
    """Have several trade in any order, and forget what they know now and then, until nothing is left."""
    flying: list[tuple[Book, Request]] = []
    while True:
        for book in order.sample(crew, len(crew)):
            if len(flying) < n:
                book._is_stale = order.random() < 0.1
                flying += [(book, request) for request in book.trade((), n - len(flying))]
        if not flying:
            if all(book.finished for book in crew):
                return
            continue
        book, request = flying.pop(order.randrange(len(flying)))
        book.trade([reading(request, fails)], 0)


@pytest.mark.parametrize("n", [1, 7])
def test_nothing_is_asked_twice_or_above_the_budget(where: Address | None, n: int) -> None:
    with opened(EBBernstein(DESIGN), Budget(80), where) as book:
        buy(book, n, order=random.Random(1), fails=at_random)
        readings = book.readings()
        assert book.spent == len(readings) == 80
        came = [r.request.cell for r in readings if r.value is not None]
        assert len(set(came)) == len(came) < 80
        assert len({r.request.id for r in readings}) == 80


def test_several_workers_share_one_budget(store: str) -> None:
    rng, where = random.Random(2), Address.parse(store)
    crew = [Book(EBBernstein(DESIGN), Budget(100), where) for _ in range(4)]
    flying: list[tuple[Book, Request]] = []
    asked: list[int] = []
    while not (all(worker.finished for worker in crew) and not flying):
        worker = rng.choice(crew)
        for request in worker.trade((), rng.randrange(3)):
            flying.append((worker, request))
            asked.append(request.id)
        if flying and rng.random() < 0.7:
            worker, request = flying.pop(rng.randrange(len(flying)))
            worker.trade([Reading(request, score(request.cell))], 0)
        elif not flying:
            for each in crew:
                each.trade((), 0)
    assert len(asked) == len(set(asked)) == 100
    assert {worker.spent for worker in crew} == {100.0}
    assert crew[0].readings() == crew[3].readings()
    for worker in crew:
        worker.close()


class Clock:
    now = 1e9

    def __call__(self) -> float:
        return self.now


def test_who_is_silent_is_taken_for_dead_and_what_it_had_counts(tmp_path: Path, monkeypatch: Any) -> None:
    clock, where = Clock(), Address(path=tmp_path / "book.db")
    monkeypatch.setattr("time.monotonic", clock)
    silent = Book(Uniform(DESIGN), Budget(20), where, lease=60, clock=clock)
    had = silent.trade((), 3)
    with opened(Uniform(DESIGN), Budget(20), where, lease=60, clock=clock) as book:
        mine = book.trade((), 2)
        assert {r.cell for r in mine}.isdisjoint(r.cell for r in had)
        clock.now += 50
        assert book.spent == 0
        _sign(book, clock)
        clock.now += 50
        again = book.trade((), 3)
        assert book.spent == 3
        assert [r.cell for r in again] == [r.cell for r in had]
        # the silent one comes back: two of its cells are with somebody else, one is not
        book.trade([Reading(again[2], None, 1.0, "down")], 0)
        silent.trade([Reading(request, 0.25, 0.5) for request in had], 0)
        assert silent.spent == 3 * 0.5 + 1
        assert silent.cells().cost.sum() == silent.spent
        buy_rest = [Reading(request, 0.5) for request in (*mine, *again[:2])]
        book.trade(buy_rest, 0)
        kept = {r.request.id: (r.value, r.cost, r.error) for r in book.readings()}
        assert {kept[request.id] for request in had} == {(None, 0.5, TOO_LATE)}
        assert kept[again[0].id] == (0.5, 1.0, None)
    silent.close()


def _sign(book: Book, clock: Clock) -> None:
    """As the thread does that gives signs of life."""
    with book._db.write() as connection:
        from evalbudget.book._workers import _SIGN

        connection.execute(_SIGN, {"me": book._workers.me, "then": clock() + 60})


def test_what_came_late_is_read_if_nobody_has_the_cell(tmp_path: Path, monkeypatch: Any) -> None:
    clock, where = Clock(), Address(path=tmp_path / "book.db")
    monkeypatch.setattr("time.monotonic", clock)
    late = Book(Uniform(DESIGN), Budget(6), where, lease=60, clock=clock)
    had = late.trade((), 2)
    with opened(Uniform(DESIGN), Budget(6), where, lease=60, clock=clock) as book:
        clock.now += 61
        book.trade((), 0)
        assert book.spent == 2
        late.trade([Reading(had[0], 0.75, 0.5)], 0)
        book.trade((), 0)
        assert book.spent == 1.5
        kept = {r.request.id: (r.value, r.cost, r.error) for r in book.readings()}
        assert kept == {had[0].id: (0.75, 0.5, None), had[1].id: (None, 1.0, LOST)}
        for each in (late, book):  # to give items up by: no call of the model failed
            counted: Any = each._copy.waiting
            assert not any(failed.all_fails for failed in counted._failures._failures.values())
    late.close()


def test_ctrl_c_between_a_turn_and_its_end_counts_nothing_twice(store: str, monkeypatch: Any) -> None:
    with opened(Uniform(DESIGN), Budget(20), Address.parse(store)) as book:
        had = book.trade((), 2)
        book.tell([Reading(had[0], 0.75, 0.25)])
        with monkeypatch.context() as patch:
            patch.setattr(book, "_has_told", interrupted)
            with pytest.raises(KeyboardInterrupt):
                book.refresh()
        book.trade([Reading(had[1], 0.5, 0.25)], 0)
        assert book.spent == 0.5
        assert not book.unread()
        assert {r.request.id: r.value for r in book.readings()} == {had[0].id: 0.75, had[1].id: 0.5}
        assert [(called.reading.value, called.reading.cost) for called in book.calls()] == [
            (0.75, 0.25),
            (0.5, 0.25),
        ]


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("committed", [False, True])
def test_a_turn_whose_end_is_not_known_is_made_again(
    store: str, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    with opened(Uniform(DESIGN), Budget(20), Address.parse(store)) as book:
        readings: list[Reading] = []
        for n in (4, 3):
            _break_the_next_turn(book, monkeypatch, committed=committed)
            with pytest.raises(StoreError, match="went away"):
                book.trade(readings, n)
            assert book.untold == tuple(readings)
            requests = book.trade((), n)
            assert len({r.id for r in requests}) == n
            assert book.untold == ()
            readings = [Reading(r, 0.5) for r in requests]
        book.trade(readings, 0)
        assert book.spent == len(book.readings()) == 7
        buy(book, fails=never)
        assert book.spent == len(set(cells_of(book))) == 20


def _break_the_next_turn(
    book: Book, monkeypatch: pytest.MonkeyPatch, *, committed: bool, error: type[StoreError] = StoreError
) -> None:
    real = Turn.write

    def write(turn: Turn) -> None:
        monkeypatch.setattr(Turn, "write", real)
        if committed:
            real(turn)
            turn.connection.connection.commit()
        raise error("the database went away")

    monkeypatch.setattr(Turn, "write", write)


def test_a_reading_of_what_was_not_asked_is_refused(where: Address | None) -> None:
    with opened(Uniform(DESIGN), Budget(20), where) as book:
        (request,) = book.trade((), 1)
        with pytest.raises(SamplerError, match="request 7"):
            book.trade([Reading(Request(7, request.cell), 0.5)], 0)
        with pytest.raises(SamplerError, match="which this worker does not have"):
            book.trade([Reading(Request(0, request.cell._replace(item=5, epoch=3)), 0.5)], 0)
        book.trade([Reading(request, 0.5)], 0)
        with pytest.raises(SamplerError, match="exactly once"):
            book.trade([Reading(request, 0.5)], 0)
        assert book.spent == 1


def test_a_larger_budget_goes_on_and_others_at_work_must_have_the_same(store: str) -> None:
    where = Address.parse(store)
    with opened(Uniform(DESIGN), Budget(10), where) as book:
        buy(book, fails=never)
        with pytest.raises(StoreError, match="budget of 10 scores, and this one is 20 scores"):
            Book(Uniform(DESIGN), Budget(20), where)
    with opened(Uniform(DESIGN), Budget(20), where) as book:
        buy(book, fails=never)
        assert book.spent == 20
    with opened(Uniform(DESIGN), Budget(10), where) as book:
        assert book.trade((), 5) == []
        assert (book.finished, book.spent) == (True, 20)


def test_answers_that_come_as_one_leaves_are_told(store: str) -> None:
    where = Address.parse(store)
    book = Book(Uniform(DESIGN), Budget(10), where)
    one, two, _ = book.trade((), 3)
    book.close([Reading(one, 0.5), Reading(two, 0.25)])
    assert book.untold == ()
    with opened(Uniform(DESIGN), Budget(10), where) as book:
        assert [(r.value, r.error) for r in book.readings()] == [(0.5, None), (0.25, None), (None, LOST)]


def test_who_was_taken_for_dead_keeps_to_the_budget_of_those_who_came_later(
    tmp_path: Path, monkeypatch: Any
) -> None:
    clock, where = Clock(), Address(path=tmp_path / "book.db")
    monkeypatch.setattr("time.monotonic", clock)
    first = Book(Uniform(DESIGN), Budget(12), where, lease=60, clock=clock)
    first.trade((), 1)
    clock.now += 61
    with opened(Uniform(DESIGN), Budget(8), where, lease=60, clock=clock):
        assert len(first.trade((), 20)) == 7
    first.close()


def test_who_stops_stops_all_until_somebody_begins_again(store: str) -> None:
    where = Address.parse(store)
    with opened(Uniform(DESIGN), Budget(20), where) as one, opened(Uniform(DESIGN), Budget(20), where) as two:
        (request,) = two.trade((), 1)
        one.stop("the model is down")
        assert two.trade((), 1) == []
        assert not two.finished
        two.trade([Reading(request, 0.5)], 0)
        assert (two.finished, two.stop_reason) == (True, "the model is down")
    with opened(Uniform(DESIGN), Budget(20), where) as book:
        buy(book, fails=never)
        assert book.spent == 20


def test_another_task_seed_or_version_is_refused(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where = Address.parse(store)
    with opened(Uniform(DESIGN), Budget(20), where, about={"task": "one"}):
        pass
    for sampler, about, told in (
        (Uniform(DESIGN, seed=1), {"task": "one"}, "seed"),
        (Uniform(DESIGN), {"task": "two"}, "task"),
        (Uniform(Design.of_items(7)), {"task": "one"}, "another design"),
    ):
        with pytest.raises(StoreError, match=told):
            Book(sampler, Budget(20), where, about=about)
    monkeypatch.setattr("evalbudget.book._opening.__version__", "9.9")
    with pytest.raises(StoreError, match=r"and this is 9\.9"):
        Book(Uniform(DESIGN), Budget(20), where, about={"task": "one"})


def test_a_budget_below_the_least_begins_nothing(tmp_path: Path) -> None:
    where = Address(path=tmp_path / "book.db")
    with pytest.raises(BudgetError, match="give 6 or more"):
        Book(Uniform(DESIGN), Budget(5), where)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_is_down_is_not_paid_for_a_long_round() -> None:
    design = Design(tuple(f"item {n}" for n in range(200)), ("up", "down", "falls"))
    sampler = Race(design, seed=1)
    tries: dict[int, int] = {}

    def fails(request: Request) -> bool:
        model = request.cell.model
        tries[model] = tries.get(model, 0) + 1
        return model == 1 or (model == 2 and tries[model] > 30)

    with opened(sampler, Budget(600)) as book:
        buy(book, 8, order=random.Random(0), fails=fails)
        book.look()
        failed = [r.request.cell.model for r in book.readings() if r.value is None]
    assert sampler.lost == {1, 2}
    assert sampler.leader() == 0
    assert max(map(failed.count, (1, 2))) <= 60


def test_columns_hold_what_is_asked_of_them() -> None:
    with opened(Uniform(DESIGN), Budget(60)) as book:
        requests = book.trade((), 4)
        book.trade([Reading(requests[0], 1.0), Reading(requests[1], None, 1.0, "down")], 0)
        cells = book.cells()
        assert cells.asked == 4
        assert cells.under_way.tolist()[:4] == [False, False, True, True]
        assert cells.failures.tolist()[:4] == [0, 1, 0, 0]
        assert np.isnan(cells.value[1:4]).all()


def test_a_file_that_is_kept_locked_is_waited_for_once_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("evalbudget.store._database._PATIENCE", 2.0)
    monkeypatch.setattr("evalbudget.store._database._SOON", 0.05)
    path = tmp_path / "book.db"
    with opened(Uniform(DESIGN), Budget(20), Address(path=path)) as book:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waited = []
        for _ in range(2):
            begun = time.monotonic()
            with pytest.raises(StoreError, match="kept locked by another process"):
                book.trade((), 1)
            waited.append(time.monotonic() - begun)
        assert waited[0] > 1.8 > waited[1]
        said = [record.getMessage() for record in caplog.records]
        assert said == [f"{path} is kept locked by another process; waiting for it, 2 s at most"]
        other.execute("ROLLBACK")
        other.close()
        assert len(book.trade((), 1)) == 1


def test_calls_without_a_score_are_counted_by_the_reason(where: Address | None) -> None:
    book = Book(Uniform(Design.of_items(8)), Budget(40), where)
    requests = book.trade((), 8)
    book.trade([Reading(requests[0], 0.5), Reading(requests[1], None, 1.0, "timeout")], 0)
    book.give_back(requests[2:3])
    book.lose(requests[3:5])
    book.trade([Reading(requests[5], None, 0.0, "timeout"), Reading(requests[6], None)], 0)
    book.trade([Reading(again, 0.5) for again in book.trade((), 3)], 0)
    listed = [called for called in book.calls() if called.reading.value is None]
    kinds = Counter((c.reading.error, c.is_lost, c.reading.cost > 0.0) for c in listed)
    assert len(kinds) == 4
    assert [((u.error, u.is_lost, u.was_paid), u.calls) for u in book.unread()] == list(kinds.items())
    book.close()
