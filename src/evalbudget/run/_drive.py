"""drive(): asks a sampler, has the requests answered concurrently, keeps the budget and the journal."""

from __future__ import annotations

import inspect
import math
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

import anyio
from anyio import to_thread

from evalbudget._version import __version__
from evalbudget.budget import Budget, Unit
from evalbudget.design import Reading, Request
from evalbudget.errors import BudgetError, EvalbudgetError, InvalidInputError, SamplerError
from evalbudget.journal import Header, Journal, resume
from evalbudget.run._journal_file import JournalFile
from evalbudget.run._purchase import Purchase, check_promise
from evalbudget.sampler import Sampler
from evalbudget.secrets import said_by

T = TypeVar("T")

Answer: TypeAlias = Callable[[Request], Awaitable[Reading | float | None]]
"""Buys one score: a Reading, a number (which costs what was promised for it), or None for a failure."""

Cost: TypeAlias = float | Callable[[Request], float]


async def drive(
    sampler: Sampler,
    answer: Answer,
    *,
    budget: Budget | str | float,
    concurrency: int = 10,
    cost: Cost = 1.0,
    journal: Journal | JournalFile | str | Path | None = None,
    store: str | Path | None = None,
    worker: str | None = None,
    lease: float = 60.0,
) -> Journal:
    """Buy scores until the budget is used up or the sampler stops: the way in without a host.

    Runs on asyncio and trio::

        journal = await drive(sampler, judge, budget="20x", journal="run.jsonl")

    A request is asked only when a slot is free and its highest cost can be promised, so that the budget is
    never exceeded, requests in flight included. Readings are told in the order in which they come back.

    An exception from ``answer`` is a failed reading that costs what was promised. An EvalbudgetError is a
    mistake of the caller and ends the run. However the run ends (cancelled, killed, an error), everything
    that was asked and read until then is in the journal: pass one if you want to continue.

    With a budget in money or tokens the sampler weighs costs (:meth:`Sampler.weigh_costs`), unless
    ``journal`` was begun by one that did not.

    To continue, build the same sampler and drive it with the same path. (With a Journal of your own,
    ``resume(sampler, journal)`` first.) Its readings count against the budget, its unanswered requests are
    answered first.

    Several processes or machines share one budget and one sampler if each is given the same ``store``::

        await drive(sampler, judge, budget="20x", store="postgresql://evals@db/evals#geography")

    They decide as one process would have. What a worker had under way when it died counts as spent, at its
    highest cost, and is asked again by another one.

    Args:
        sampler: fresh, or resumed from ``journal``.
        answer: buys one score.
        budget: what the whole journal may cost; text as for :meth:`Budget.parse`.
        concurrency: how many requests may be in flight, of this process.
        cost: the highest cost of one request in units of the budget, or of a given request; a number where
            there is a store.
        journal: where to record; a new Journal if None. A path is a file that is begun, or continued if it
            exists.
        store: instead of a journal, what several workers share: the path of an SQLite file, or
            ``postgresql://user@host/database#name``. Begun if nothing is there.
        worker: name of this process in the store; an earlier one of the same name is taken to be dead. None:
            a new one.
        lease: seconds without a sign of life after which a worker is taken to be dead.

    Returns:
        The journal.

    Raises:
        InvalidInputError: ``journal`` does not fit what ``sampler`` was asked, concurrency below 1, an
            unusable answer.
        BudgetError: the budget cannot be parsed or is below the sampler's minimum, or a reading cost more
            than was promised for it.
        SamplerError: the sampler neither asked nor stopped, or requests were never answered.
        JournalError: another sampler, seed or design wrote ``journal``, or it cannot be written.
        StoreError: the store belongs to another purchase, or cannot be used.
        StoreDownError: it could not be reached for a minute; what came back and is not in it is in its
            ``readings``.
    """
    if concurrency < 1:
        raise InvalidInputError(f"concurrency is {concurrency}; it must be 1 or more")
    total = Budget.parse(budget, n_items=sampler.design.n_items)
    weighs = total.unit is not Unit.SCORES and not sampler.asked
    if store is not None:
        if journal is not None or callable(cost) or sampler.asked:
            raise InvalidInputError(
                "with a store, drive() takes a fresh sampler, a number as cost and no journal: the "
                "store is one"
            )
        if weighs:
            sampler.weigh_costs(total.amount)
        _check_least(sampler, total)
        # it brings SQLAlchemy, which takes longer to load than all else
        from evalbudget.run._drive_shared import drive_shared
        from evalbudget.run._shared_purchase import SharedPurchase

        join = partial(SharedPurchase, sampler, total, store, cost=cost, worker=worker, lease=lease)
        shared = await to_thread.run_sync(join)
        return await drive_shared(shared, lambda request: _bought(answer, request, cost), concurrency)
    if journal is None:
        if weighs:
            sampler.weigh_costs(total.amount)
        journal = Journal(Header.of(sampler, __version__))
    if not isinstance(journal, str | Path):
        if weighs and _weighs(journal):
            sampler.weigh_costs(total.amount)
        return await _Run(sampler, answer, total, cost, journal).until_done(concurrency)
    path = Path(journal)
    if path.exists():
        file = JournalFile.open(path)
        if weighs and _weighs(file):
            sampler.weigh_costs(total.amount)
    else:
        if weighs:
            sampler.weigh_costs(total.amount)
        _Run(sampler, answer, total, cost, Journal())  # what it refuses begins no file
        file = JournalFile.create(path, Header.of(sampler, __version__))
    try:
        resume(sampler, file.journal, path=path)
        return await _Run(sampler, answer, total, cost, file).until_done(concurrency)
    finally:
        file.close()


def _weighs(journal: Journal | JournalFile) -> bool:
    """Whether whoever began the journal weighed costs; nobody began one without a header."""
    header = (journal.journal if isinstance(journal, JournalFile) else journal).header
    return header is None or bool(header.config.get("costs"))


class _Run:
    """The state of one drive()."""

    def __init__(
        self,
        sampler: Sampler,
        answer: Answer,
        budget: Budget,
        cost: Cost,
        journal: Journal | JournalFile,
    ) -> None:
        self.journal = journal.journal if isinstance(journal, JournalFile) else journal
        if self.journal.header is not None:
            self.journal.header.check(sampler)
        recorded = sum(event.reading is None for event in self.journal)
        if recorded != sampler.asked or self.journal.pending != sampler.pending:
            raise InvalidInputError(
                f"the journal has {recorded} requests, the sampler was asked {sampler.asked}; give drive() a "
                "fresh sampler with an empty journal, or one resumed from this journal"
            )
        if not recorded:
            _check_least(sampler, budget)
        highest = 1.0 if callable(cost) else cost
        self._purchase = Purchase(sampler, budget, cost=highest, journal=journal)
        self._sampler = sampler
        self._answer = answer
        self._cost = cost
        self._waiting = deque(sampler.pending)  # asked, not yet sent
        self._in_flight = 0
        self._error: Exception | None = None
        self._changed = anyio.Event()

    async def until_done(self, concurrency: int) -> Journal:
        async with anyio.create_task_group() as group:
            while self._error is None:
                try:
                    self._send(group.start_soon, concurrency)
                except Exception as ex:  # raised below, outside of the group, lest it becomes a group too
                    self._error = ex
                    break
                if not self._in_flight:
                    break
                await self._changed.wait()
                self._changed = anyio.Event()
            if self._error is not None:
                group.cancel_scope.cancel()
        if self._error is not None:
            raise self._error
        lost = len(self._sampler.pending) - len(self._waiting)
        if lost:
            raise SamplerError(f"{lost} requests were sent and never answered; resume from the journal")
        return self.journal

    def _send(self, start: Callable[..., object], concurrency: int) -> None:
        """Fill the free slots as far as the budget allows."""
        while self._in_flight < concurrency and (self._waiting or self._ask()):
            request = self._waiting[0]
            promised = self._highest(request)
            if not self._purchase.promise(request, promised):
                return  # until something in flight turns out cheaper, or for good
            self._waiting.popleft()
            self._in_flight += 1
            start(self._buy, request, promised)

    def _ask(self) -> bool:
        # a request is recorded once it is asked, so with a known cost none is asked that cannot be paid
        if not callable(self._cost) and not self._purchase.affordable:
            return False
        requests = self._purchase.ask()
        self._waiting.extend(requests)
        return bool(requests)

    def _highest(self, request: Request) -> float:
        return self._cost(request) if callable(self._cost) else self._cost

    async def _buy(self, request: Request, promised: float) -> None:
        try:
            # no await after it: a reading that came back is taken in whole, also when cancelled
            self._take_in(await _bought(self._answer, request, promised), promised)
        except Exception as ex:
            self._error = self._error or ex
        finally:
            self._in_flight -= 1
            self._changed.set()

    def _take_in(self, reading: Reading, promised: float) -> None:
        self._purchase.tell(reading)
        check_promise(reading, promised)


def _check_least(sampler: Sampler, budget: Budget) -> None:
    least = sampler.minimum_readings
    if budget.unit is Unit.SCORES and budget.amount < least:
        raise BudgetError(
            f"budget of {budget} is below the {least} that {sampler.name} needs before it can choose; give "
            f"{least} or more"
        )


async def _bought(answer: Answer, request: Request, promised: float) -> Reading:
    """What came back, with or without a score."""
    try:
        return _as_reading(request, await _awaitable(answer(request)), promised)
    except EvalbudgetError:
        raise
    except anyio.get_cancelled_exc_class() as ex:
        if anyio.current_effective_deadline() == -math.inf:
            raise  # the run is being cancelled
        # a cancellation that leaked out of the host's own tasks must not end the run in silence
        return Reading(request, None, promised, f"cancelled by the host: {ex!r}")
    except Exception as ex:  # the host's: whatever it is, this score was not had
        return Reading(request, None, promised, said_by(ex))


def _awaitable(answer: Awaitable[T]) -> Awaitable[T]:
    if not inspect.isawaitable(answer):
        raise InvalidInputError("answer is a plain function; drive() needs an async one (async def)")
    return answer


def _as_reading(request: Request, answer: Reading | float | None, promised: float) -> Reading:
    if isinstance(answer, Reading):
        if answer.request != request:
            raise InvalidInputError(
                f"asked request {request.id}, got a reading of request {answer.request.id}; "
                "answer() must return the reading of the request it was given"
            )
        return answer
    if answer is None:
        return Reading(request, None, promised, "no score")
    try:
        value = float(answer)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"answer() returned {answer!r} for request {request.id}; return a Reading, a number or None"
        ) from None
    return Reading(request, value, promised)
