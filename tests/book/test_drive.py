"""drive(): what it buys, what it never exceeds, and what is left when it ends in the middle."""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import pytest

import warm
from evalbudget import Cell, Design, Reading, Request
from evalbudget.book import LOST, Bought, drive
from evalbudget.errors import BudgetError, InvalidInputError, SamplerError, StoreError
from evalbudget.races.samplers import Race
from evalbudget.repeats.estimates import ItemReadings
from evalbudget.repeats.samplers import Auto, EBBernstein, Uniform
from evalbudget.testing import gaussian, play
from evalbudget_pairwise.samplers import UniformPairs, duels

T = TypeVar("T")
Run = Callable[[Callable[[], Coroutine[Any, Any, T]]], T]
K = 5
DESIGN = Design.of_items(K)
EXAMPLE = Path(__file__).parents[2] / "examples" / "without_a_host.py"


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Run[Any]:
    return lambda main: anyio.run(main, backend=request.param)


class Host:
    """Answers out of order; notes how much was in flight."""

    def __init__(self, *, fails: float = 0.0, cost: Callable[[Request], float] | None = None) -> None:
        self.rng = random.Random(0)
        self.fails = fails
        self.cost = cost
        self.in_flight = self.most = 0
        self.asked: list[Request] = []

    async def __call__(self, request: Request) -> Reading | float:
        self.asked.append(request)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            for _ in range(self.rng.randrange(1, 6)):
                await anyio.sleep(0)
            if self.rng.random() < self.fails:
                raise TimeoutError("no answer")
            value = gaussian(request.cell)
            return Reading(request, value, self.cost(request)) if self.cost else value
        finally:
            self.in_flight -= 1


@pytest.mark.parametrize("concurrency", [1, 3, 50])
@pytest.mark.parametrize("fails", [0.0, 0.2])
def test_spends_the_budget_exactly(run: Run[Bought], concurrency: int, fails: float) -> None:
    host = Host(fails=fails)
    bought = run(lambda: drive(EBBernstein(DESIGN), host, budget=120, concurrency=concurrency))
    assert bought.spent == len(bought.readings) == len(host.asked) == 120
    assert bought.stopped == "budget used up"
    assert host.most <= concurrency
    if concurrency == 3:
        assert host.most == 3
    failed = [r for r in bought.readings if r.value is None]
    assert bool(failed) == bool(fails)
    assert all(r.error == "TimeoutError: no answer" and r.cost == 1.0 for r in failed)
    came = [r.request.cell for r in bought.readings if r.value is not None]
    assert len(set(came)) == len(came)


def test_a_book_is_gone_on_with(run: Run[Bought], tmp_path: Path) -> None:
    book, host = tmp_path / "run.db", Host(fails=0.1)
    with pytest.raises(BudgetError, match="give 5 or more"):
        run(lambda: drive(EBBernstein(DESIGN), host, budget=3, book=book))
    assert not book.exists()
    for budget in (60, 100, 100):
        bought = run(lambda: drive(EBBernstein(DESIGN), host, budget=budget, concurrency=7, book=book))  # noqa: B023
        assert bought.spent == len(bought.readings) == len(host.asked) == budget
    readings = ItemReadings.of_bought(bought.readings, K)
    assert readings.knows_phases
    assert readings.value.size == sum(r.value is not None for r in bought.readings)
    with pytest.raises(StoreError, match=r"other settings \(seed"):
        run(lambda: drive(EBBernstein(DESIGN, seed=1), host, budget=200, book=book))
    with pytest.raises(StoreError, match="another design"):
        run(lambda: drive(EBBernstein(Design.of_items(4)), host, budget=200, book=book))


@pytest.mark.parametrize("concurrency", [1, 3, 50])
def test_never_over_budget_with_unequal_costs(run: Run[Bought], concurrency: int) -> None:
    def cost(cell: Cell) -> float:
        return 0.5 + cell.item

    held = most = 0.0

    async def answer(request: Request) -> Reading:
        nonlocal held, most
        held += cost(request.cell)
        most = max(most, held + spent)
        reading = await host(request)
        assert isinstance(reading, Reading)
        pay(reading.cost, request)
        return reading

    spent = 0.0

    def pay(paid: float, request: Request) -> None:
        nonlocal held, spent
        held, spent = held - cost(request.cell), spent + paid

    host = Host(cost=lambda r: cost(r.cell) * (0.3 if r.id % 2 else 1.0))
    bought = run(lambda: drive(EBBernstein(DESIGN), answer, budget="$60", cost=cost, concurrency=concurrency))
    assert 54 < bought.spent <= 60
    assert bought.spent == pytest.approx(spent)
    assert most <= 60 + 1e-9


@pytest.mark.parametrize(("budget", "weighs"), [("$60", True), ("60tok", True), ("60", False)])
def test_costs_are_weighed_where_the_budget_is_no_number_of_scores(
    run: Run[Bought], budget: str, weighs: bool
) -> None:
    sampler = EBBernstein(DESIGN)
    run(lambda: drive(sampler, Host(), budget=budget))
    assert sampler.weighs_costs is weighs


def test_a_book_in_scores_is_no_book_in_money(run: Run[Bought], tmp_path: Path) -> None:
    run(lambda: drive(EBBernstein(DESIGN), Host(), budget=30, book=tmp_path / "run.db"))
    with pytest.raises(StoreError, match="costs"):
        run(lambda: drive(EBBernstein(DESIGN), Host(), budget="$60", book=tmp_path / "run.db"))


def test_a_fixed_cost_is_held_and_the_real_one_paid(run: Run[Bought]) -> None:
    host = Host(cost=lambda r: 0.7)
    bought = run(lambda: drive(Uniform(DESIGN), host, budget="$10", cost=1.0, concurrency=4))
    assert 9 < bought.spent <= 10
    assert bought.spent + 1.0 > 10


def test_a_reading_dearer_than_held_ends_the_run_and_is_kept(run: Run[Bought], tmp_path: Path) -> None:
    book = tmp_path / "run.db"
    host = Host(cost=lambda r: 3.0)
    with pytest.raises(BudgetError, match=r"cost 3.*at most 1.*highest cost"):
        run(lambda: drive(Uniform(DESIGN), host, budget=10, book=book, concurrency=1))
    bought = run(lambda: drive(Uniform(DESIGN), Host(), budget=10, book=book, concurrency=1))
    assert bought.spent == 10
    assert [r.cost for r in bought.readings[:2]] == [3.0, 1.0]


def test_stops_when_the_sampler_does(run: Run[Bought]) -> None:
    bought = run(lambda: drive(Uniform(DESIGN), Host(fails=1.0), budget=1000))
    assert bought.stopped == "every item closed after repeated failures"
    assert bought.spent < 1000


def test_stops_when_the_caller_says_so(run: Run[Bought], tmp_path: Path) -> None:
    host, book = Host(), tmp_path / "run.db"

    def until() -> str | None:
        return "enough" if len(host.asked) >= 30 else None

    bought = run(lambda: drive(Uniform(DESIGN), host, budget=100, until=until, book=book, concurrency=4))
    assert bought.stopped == "enough"
    assert run(lambda: drive(Uniform(DESIGN), host, budget=100, until=lambda: "")).spent == 0
    assert 30 <= bought.spent == len(host.asked) <= 34
    bought = run(lambda: drive(Uniform(DESIGN), host, budget=100, book=book))
    assert (bought.spent, bought.stopped) == (100, "budget used up")


def test_a_score_that_cannot_be_is_kept_as_a_failure_and_loses_no_other(
    run: Run[Bought], tmp_path: Path
) -> None:
    def made() -> UniformPairs:
        return UniformPairs(duels([f"item {n}" for n in range(8)], ("a", "b"), "judge"))

    async def answer(request: Request) -> float:
        return 7.0 if request.id == 3 else 1.0

    with pytest.raises(InvalidInputError, match="preference of 7"):
        run(lambda: drive(made(), answer, budget=8, concurrency=8, book=tmp_path / "run.db"))
    bought = run(lambda: drive(made(), answer, budget=8, book=tmp_path / "run.db"))
    assert bought.spent == 8
    assert [r.request.id for r in bought.readings if r.value is None] == [3]
    assert "preference of 7" in str(bought.readings[3].error)


@pytest.mark.parametrize("cost", [-1.0, 0.0, float("nan"), float("inf")])
def test_a_highest_cost_that_is_none_is_refused(run: Run[Bought], cost: float) -> None:
    for most in (cost, lambda cell: cost):
        with pytest.raises(BudgetError, match="finite cost above zero"):
            run(lambda most=most: drive(Uniform(DESIGN), Host(), budget="$12", cost=most))


class Empty(Uniform):
    def plan(self, table: Any, last: Any) -> Any:
        planned = super().plan(table, last)
        return planned if last is None else planned._replace(item=planned.item[:0], note=last)


def test_a_sampler_that_neither_plans_nor_stops_is_refused(run: Run[Bought]) -> None:
    with pytest.raises(SamplerError, match="empty round twice"):
        run(lambda: drive(Empty(DESIGN), Host(), budget=10))


async def _wrong_request(request: Request) -> Reading:
    return Reading(Request(99, request.cell), 1.0)


async def _text(request: Request) -> Any:
    return "good"


def _not_async(request: Request) -> Any:
    return 1.0


async def _our_error(request: Request) -> float:
    raise InvalidInputError("no such judge; choose another")


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (_wrong_request, "asked request 0, got a reading of request 99"),
        (_text, "'good'"),
        (_not_async, "plain function"),
        (_our_error, "^no such judge"),
    ],
)
def test_mistakes_of_the_caller_are_raised_plainly(
    run: Run[Bought], answer: Callable[[Request], Awaitable[Any]], complaint: str
) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        run(lambda: drive(Uniform(DESIGN), answer, budget=10, concurrency=1))


def test_none_and_nan_are_failures(run: Run[Bought]) -> None:
    async def answer(request: Request) -> float | None:
        return {0: None, 1: float("nan")}.get(request.id, 1.0)

    bought = run(lambda: drive(Uniform(DESIGN), answer, budget=8, concurrency=1))
    assert [r.error for r in bought.readings][:3] == ["no score", "score is nan", None]
    assert (
        bought.readings[0].request.cell == bought.readings[1].request.cell == bought.readings[2].request.cell
    )


@pytest.mark.parametrize("concurrency", [1, 6])
def test_cancelled_it_keeps_what_was_read(run: Run[Any], concurrency: int, tmp_path: Path) -> None:
    book, told = tmp_path / "run.db", set[Request]()

    async def main() -> None:
        with anyio.CancelScope() as scope:

            async def answer(request: Request) -> float:
                if len(told) >= 25:
                    scope.cancel()
                    await anyio.sleep(60)
                await anyio.sleep(0)
                told.add(request)
                return gaussian(request.cell)

            await drive(EBBernstein(DESIGN), answer, budget=100, concurrency=concurrency, book=book)
        assert scope.cancelled_caught

    run(main)
    bought = run(lambda: drive(EBBernstein(DESIGN), Host(), budget=100, book=book, concurrency=concurrency))
    lost = [r for r in bought.readings if r.value is None]
    assert told <= {r.request for r in bought.readings if r.value is not None}
    assert bought.spent == len(bought.readings) == 100
    assert 0 < len(lost) <= concurrency
    assert {(r.error, r.cost) for r in lost} == {(LOST, 1.0)}


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_cancellation_leaking_from_the_host_fails_one_reading_only(backend: str) -> None:
    async def answer(request: Request) -> float:
        await anyio.lowlevel.checkpoint()
        if request.id == 7:
            if backend == "trio":
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await anyio.sleep(1)
                raise RuntimeError("trio keeps cancellations in their scope")
            raise asyncio.CancelledError
        return 1.0

    async def main() -> Bought:
        return await drive(Uniform(Design.of_items(5)), answer, budget=60, concurrency=6)

    bought = anyio.run(main, backend=backend)
    assert len(bought.readings) == 60
    assert [r.request.id for r in bought.readings if r.value is None] == [7]


def test_what_cannot_be_driven_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="concurrency is 0"):
        anyio.run(lambda: drive(Uniform(DESIGN), Host(), budget=10, concurrency=0))
    with pytest.raises(InvalidInputError, match="lease is 0"):  # nobody would look what others bought
        anyio.run(lambda: drive(Uniform(DESIGN), Host(), budget=10, lease=0))
    used = Race(Design(DESIGN.items, ("a", "b")))
    used.next_cells(3)
    with pytest.raises(InvalidInputError, match="fresh sampler"):
        anyio.run(lambda: drive(used, Host(), budget=20))
    with pytest.raises(BudgetError, match="give 5 or more"):
        anyio.run(lambda: drive(EBBernstein(DESIGN), Host(), budget=3))


def test_judges_take_turns_as_they_do_on_a_host() -> None:
    def made() -> Auto:
        sampler = Auto(Design(DESIGN.items, raters=("a", "b", "c")), budget=90)
        sampler.rotate(lambda item, epoch: (item + epoch) % 3)
        return sampler

    bought = anyio.run(lambda: drive(made(), Host(), budget=90, concurrency=1))
    assert [r.request for r in bought.readings] == [r.request for r in play(made(), 90).readings]


def test_a_run_ends_once_every_item_is_known() -> None:
    async def answer(request: Request) -> float:
        return 0.5

    sampler = Auto(DESIGN)
    sampler.stop_when_known(0.2, (0.0, 1.0))
    bought = anyio.run(lambda: drive(sampler, answer, budget=10_000))
    assert bought.stopped == "every item that can be scored is known to ± 0.2"
    assert bought.spent < 500


def test_the_example_runs_and_runs_again_for_nothing(tmp_path: Path) -> None:
    outputs = []
    for _ in range(2):
        done = warm.run([sys.executable, str(EXAMPLE)], host="core", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        outputs.append(done.stdout)
    assert outputs[0].startswith("spent 600; estimate ")
    assert outputs[1] == outputs[0]
