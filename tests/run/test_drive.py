from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import pytest

from evalbudget import Cell, Design, Journal, Reading, Request, Sampler, resume
from evalbudget.errors import BudgetError, InvalidInputError, JournalError, SamplerError
from evalbudget.journal import Event, Header
from evalbudget.repeats.samplers import EBBernstein, Uniform
from evalbudget.run import JournalFile, drive
from evalbudget.sampler import Eligible
from evalbudget.testing import gaussian, play

T = TypeVar("T")
Run = Callable[[Callable[[], Coroutine[Any, Any, T]]], T]
K = 5
DESIGN = Design.of_items(K)


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
def test_spends_the_budget_exactly(run: Run[Journal], concurrency: int, fails: float) -> None:
    host, sampler = Host(fails=fails), EBBernstein(DESIGN)
    journal = run(lambda: drive(sampler, host, budget=120, concurrency=concurrency))
    assert journal.spent == len(journal.readings) == len(host.asked) == sampler.asked == 120
    assert journal.pending == sampler.pending == ()
    assert host.most <= concurrency
    if concurrency == 3:
        assert host.most == 3
    failed = [r for r in journal.readings if r.value is None]
    assert bool(failed) == bool(fails)
    assert all(r.error == "TimeoutError: no answer" and r.cost == 1.0 for r in failed)


def test_one_at_a_time_equals_playing(run: Run[Journal]) -> None:
    journal = run(lambda: drive(EBBernstein(DESIGN), Host(), budget=100, concurrency=1))
    assert journal.events == play(EBBernstein(DESIGN), 100).events


def test_what_it_did_can_be_resumed_and_continued(run: Run[Journal]) -> None:
    journal = run(lambda: drive(EBBernstein(DESIGN), Host(fails=0.1), budget=60, concurrency=7))
    again = EBBernstein(DESIGN)
    resume(again, journal)
    host = Host()
    more = run(lambda: drive(again, host, budget=100, concurrency=7, journal=journal))
    assert more is journal
    assert len(host.asked) == 40
    assert journal.spent == 100
    assert len({r.request.cell for r in journal.readings}) == 100


def test_pending_requests_are_answered_first(run: Run[Journal]) -> None:
    journal = play(EBBernstein(DESIGN), 10)
    sampler = EBBernstein(DESIGN)
    resume(sampler, journal)
    for request in sampler.ask(4):
        journal.ask(request)
    left, host = sampler.pending, Host()
    run(lambda: drive(sampler, host, budget=13, journal=journal, concurrency=2))
    assert set(host.asked) == set(left[:3])  # trio starts tasks in random order
    assert journal.spent == 13
    assert journal.pending == left[3:]  # asked before, but this budget cannot pay for it


@pytest.mark.parametrize("concurrency", [1, 3, 50])
def test_never_over_budget_with_unequal_costs(run: Run[Journal], concurrency: int) -> None:
    def cost(request: Request) -> float:
        return 0.5 + request.cell.item

    host = Host(cost=lambda r: cost(r) * (0.3 if r.id % 2 else 1.0))
    seen: list[float] = []

    class Watched(Journal):
        def append(self, event: Event) -> None:
            super().append(event)
            seen.append(sum(cost(r) for r in self.pending) + self.spent)

    journal = Watched()
    run(
        lambda: drive(
            EBBernstein(DESIGN),
            host,
            budget="$60",
            cost=cost,
            concurrency=concurrency,
            journal=journal,
        )
    )
    sent = {r.id for r in host.asked}
    assert 54 < journal.spent <= 60
    assert len([r for r in journal.pending if r.id not in sent]) <= 1
    # promised at the highest cost, all but one request that waits for money
    assert max(seen) <= 60 + 4.5 + 1e-9


@pytest.mark.parametrize(("budget", "weighs"), [("$60", True), ("60tok", True), ("60", False)])
def test_costs_are_weighed_where_the_budget_is_no_number_of_scores(
    run: Run[Journal], budget: str, weighs: bool, tmp_path: Any
) -> None:
    for journal in (None, Journal(), tmp_path / "run.jsonl"):
        sampler = EBBernstein(DESIGN)
        bought = run(lambda: drive(sampler, Host(), budget=budget, journal=journal))  # noqa: B023
        assert sampler.weighs_costs is weighs
        assert bought.header is None or bought.header.config == sampler.config
    again = EBBernstein(DESIGN)
    run(lambda: drive(again, Host(), budget=budget, journal=tmp_path / "run.jsonl"))
    assert again.config == sampler.config
    assert again.asked == sampler.asked


def test_a_run_in_money_goes_on_by_counts_if_it_began_so(run: Run[Journal], tmp_path: Any) -> None:
    path = tmp_path / "run.jsonl"
    run(lambda: drive(EBBernstein(DESIGN), Host(), budget=30, journal=path))
    sampler = EBBernstein(DESIGN)
    run(lambda: drive(sampler, Host(), budget="$60", journal=path))
    assert not sampler.weighs_costs
    assert sampler.asked == 60
    began = Journal(Header.of(EBBernstein(DESIGN), "0"))
    assert len(run(lambda: drive(EBBernstein(DESIGN), Host(), budget="$30", journal=began)).readings) == 30


def test_a_fixed_cost_leaves_nothing_pending(run: Run[Journal]) -> None:
    host = Host(cost=lambda r: 0.7)
    journal = run(lambda: drive(Uniform(DESIGN), host, budget="$10", cost=1.0, concurrency=4))
    assert journal.pending == ()
    assert 9 < journal.spent <= 10
    assert journal.spent + 1.0 > 10


def test_a_reading_dearer_than_promised_ends_the_run(run: Run[Journal]) -> None:
    journal = Journal()
    with pytest.raises(BudgetError, match=r"cost 3.*at most 1.*highest cost"):
        run(
            lambda: drive(
                Uniform(DESIGN), Host(cost=lambda r: 3.0), budget=10, journal=journal, concurrency=1
            )
        )
    assert journal.spent == 3.0


def test_stops_when_the_sampler_does(run: Run[Journal]) -> None:
    sampler = Uniform(DESIGN)
    journal = run(lambda: drive(sampler, Host(fails=1.0), budget=1000))
    assert sampler.stop_reason
    assert journal.pending == ()
    assert len(sampler.closed) == K
    assert journal.spent < 1000


class Stuck(Sampler):
    name = "stuck"

    def _next(self, eligible: Eligible | None) -> Cell | None:
        return Cell(epoch=self.asked) if self.asked < 3 else None


def test_a_sampler_that_stalls_raises(run: Run[Journal]) -> None:
    journal = Journal()
    with pytest.raises(SamplerError, match="'stuck' neither asked nor stopped"):
        run(lambda: drive(Stuck(DESIGN), Host(), budget=10, journal=journal))
    assert journal.spent == 3


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
    run: Run[Journal], answer: Callable[[Request], Awaitable[Any]], complaint: str
) -> None:
    with pytest.raises(InvalidInputError, match=complaint):
        run(lambda: drive(Uniform(DESIGN), answer, budget=10, concurrency=1))


def test_none_and_nan_are_failures(run: Run[Journal]) -> None:
    async def answer(request: Request) -> float | None:
        return {0: None, 1: float("nan")}.get(request.id, 1.0)

    journal = run(lambda: drive(Uniform(DESIGN), answer, budget=8))
    assert [r.error for r in journal.readings][:3] == ["no score", "score is nan", None]


@pytest.mark.parametrize("concurrency", [1, 6])
def test_cancelled_it_keeps_what_was_read(run: Run[Any], concurrency: int) -> None:
    journal, sampler = Journal(), EBBernstein(DESIGN)
    told: list[Request] = []

    async def main() -> None:
        with anyio.CancelScope() as scope:

            async def answer(request: Request) -> float:
                if len(told) >= 25:
                    scope.cancel()
                    await anyio.sleep(60)
                await anyio.sleep(0)
                told.append(request)
                return gaussian(request.cell)

            await drive(sampler, answer, budget=100, concurrency=concurrency, journal=journal)
        assert scope.cancelled_caught

    run(main)
    assert {r.request for r in journal.readings} == set(told)
    assert len(told) >= 25
    assert journal.pending == sampler.pending != ()
    again = EBBernstein(DESIGN)
    resume(again, journal)
    run(lambda: drive(again, Host(), budget=100, journal=journal, concurrency=concurrency))
    assert journal.spent == len({r.request.cell for r in journal.readings}) == 100


def test_a_journal_of_another_run_is_refused(run: Run[Journal]) -> None:
    journal = play(EBBernstein(DESIGN), 10)
    with pytest.raises(InvalidInputError, match="10 requests, the sampler was asked 0"):
        run(lambda: drive(EBBernstein(DESIGN), Host(), budget=20, journal=journal))
    used = EBBernstein(DESIGN)
    play(used, 3)
    with pytest.raises(InvalidInputError, match="0 requests, the sampler was asked 3"):
        run(lambda: drive(used, Host(), budget=20))


def test_concurrency_is_at_least_one(run: Run[Journal]) -> None:
    with pytest.raises(InvalidInputError, match="concurrency is 0"):
        run(lambda: drive(Uniform(DESIGN), Host(), budget=10, concurrency=0))


def test_a_journal_that_cannot_be_written_ends_the_run(run: Run[Journal], tmp_path: Any) -> None:
    sampler = Uniform(DESIGN)
    file = JournalFile.create(tmp_path / "j.jsonl", Header.of(sampler, "1"))
    file.close()
    with pytest.raises(JournalError, match="cannot be written"):
        run(lambda: drive(sampler, Host(), budget=10, journal=file))


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

    async def run() -> Journal:
        return await drive(Uniform(Design.of_items(5)), answer, budget=60, concurrency=6)

    journal = anyio.run(run, backend=backend)
    assert len(journal.readings) == 60
    assert [r.request.id for r in journal.readings if r.value is None] == [7]


def test_a_journal_of_another_sampler_is_refused() -> None:
    journal = Journal(Header.of(Uniform(Design.of_items(4), seed=1), "0"))
    with pytest.raises(JournalError, match="another design"):
        anyio.run(lambda: drive(EBBernstein(DESIGN, seed=2), Host(), budget=60, journal=journal))


def test_a_budget_below_one_reading_of_each_item_names_the_minimum() -> None:
    with pytest.raises(BudgetError, match="give 5 or more"):
        anyio.run(lambda: drive(EBBernstein(DESIGN), Host(), budget=3))
