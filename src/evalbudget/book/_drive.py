"""drive(): has a sampler's cells answered concurrently, within a budget, and keeps them in a book."""

from __future__ import annotations

import inspect
import math
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias, TypeVar

import anyio
from anyio import to_thread

from evalbudget.book._book import Book
from evalbudget.budget import Budget, Unit
from evalbudget.design import Cell, Reading, Request
from evalbudget.errors import BudgetError, EvalbudgetError, InvalidInputError, StoreDownError
from evalbudget.sampler import Sampler
from evalbudget.secrets import said_by
from evalbudget.shown import shown_logger
from evalbudget.store import Address

T = TypeVar("T")

log = shown_logger(__name__)

Answer: TypeAlias = Callable[[Request], Awaitable[Reading | float | None]]
"""Buys one score: a Reading, a number (which costs what was held for it), or None for a failure."""

Cost: TypeAlias = float | Callable[[Cell], float]

_LOOK = 0.1
"""Seconds after which a worker with a free hand looks again what others did."""


@dataclass(frozen=True, slots=True)
class Bought:
    """What was bought, by all who filled the book.

    Attributes:
        readings: every call that came back or was lost, with a score or without, in the order of asking.
        spent: by them.
        stopped: why nothing more was asked.
    """

    readings: tuple[Reading, ...]
    spent: float
    stopped: str


async def drive(
    sampler: Sampler,
    answer: Answer,
    *,
    budget: Budget | str | float,
    concurrency: int = 10,
    cost: Cost = 1.0,
    book: str | Path | None = None,
    lease: float = 60.0,
    until: Callable[[], str | None] = lambda: None,
) -> Bought:
    """Buy scores until the budget is used up or the sampler stops: the way in without a host.

    Runs on asyncio and trio::

        bought = await drive(sampler, judge, budget="20x", book="run.db")

    A call is made only when a slot is free and its highest cost can be held, so that the budget is never
    exceeded, calls under way included. Cells are asked in the sampler's order: where the next one is too dear
    for what is left, the run ends.

    An exception from ``answer`` is a failed reading that costs what was held, and is asked again. An
    EvalbudgetError is a mistake of the caller and ends the run. However a run ends (cancelled, killed, an
    error), what came back is in the book; what was under way counts as spent, at its highest cost, since it
    may be billed. Build the same sampler and drive it with the same book to go on, with a larger budget if
    you like.

    Several processes or machines share one budget if each is given the same book::

        await drive(sampler, judge, budget="20x", book="postgresql://evals@db/evals#geography")

    With a budget in money or tokens the sampler weighs costs (:meth:`Sampler.weigh_costs`).

    Args:
        sampler: fresh.
        answer: buys one score.
        budget: what may be spent in all, by earlier runs and other processes too; text as for
            :meth:`Budget.parse`.
        concurrency: how many calls may be under way, of this process.
        cost: the highest cost of one call in units of the budget, or of one for a given cell.
        book: the path of an SQLite file, or ``postgresql://user@host/database#name``; begun if nothing is
            there, else gone on with. None: nothing is kept.
        lease: seconds without a sign of life after which a worker on another machine is taken to be dead.
        until: says, whenever something came back, why nothing more is to be asked; None to go on.

    Raises:
        InvalidInputError: the sampler was asked before, concurrency below 1, no lease, an unusable answer.
        BudgetError: the budget cannot be parsed or is below the sampler's minimum, or a reading cost more
            than was held for it.
        SamplerError: the sampler neither planned nor stopped.
        StoreError: the book is another sampler's, seed's or design's, or cannot be used.
        StoreDownError: it could not be reached for a minute; what came back and is not in it is in its
            ``readings``.
    """
    if concurrency < 1:
        raise InvalidInputError(f"concurrency is {concurrency}; it must be 1 or more")
    if not lease > 0.0:
        raise InvalidInputError(f"lease is {lease:g}; give the seconds after which a silent worker is dead")
    if sampler.asked:
        raise InvalidInputError(
            "drive() takes a fresh sampler, and this one was asked before; make another one"
        )
    total = Budget.parse(budget, n_items=sampler.design.n_items)
    if total.unit is not Unit.SCORES:
        sampler.weigh_costs(total.amount)
    where = None if book is None else Address.parse(book)
    opened = await to_thread.run_sync(partial(Book, sampler, total, where, most=cost, lease=lease))
    run = _Worker(opened, partial(_bought, answer), until)
    try:
        await run.until_done(concurrency)
        return await to_thread.run_sync(run.found)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(run.leave)


class _Worker:
    """One process's part of the work."""

    def __init__(
        self, book: Book, buy: Callable[[Request, float], Awaitable[Reading]], until: Callable[[], str | None]
    ) -> None:
        self._arrived: deque[Reading] = deque()
        self._book, self._buy, self._until = book, buy, until
        self._in_flight = 0
        self._error: Exception | None = None
        self._changed = anyio.Event()

    async def until_done(self, concurrency: int) -> None:
        async with anyio.create_task_group() as group:
            while self._error is None:
                try:
                    requests = await self._trade(concurrency - self._in_flight)
                except Exception as ex:  # raised below, outside of the group, lest it becomes a group too
                    self._error = ex
                    break
                self._in_flight += len(requests)
                for request in requests:
                    group.start_soon(self._answer, request)
                if not self._in_flight and not self._arrived and self._book.finished:
                    break
                with anyio.move_on_after(_LOOK if self._in_flight < concurrency else None):
                    await self._changed.wait()
            # where the book is away, calls under way still come back, and are handed to the caller
            if self._error is not None and not isinstance(self._error, StoreDownError):
                group.cancel_scope.cancel()
        if self._error is not None:
            raise self._error

    async def _trade(self, n: int) -> Sequence[Request]:
        """Tell what has arrived, and take up to so many; in a thread, since the book may make it wait."""
        self._changed = anyio.Event()
        requests: Sequence[Request] = ()
        with anyio.CancelScope(shield=True):
            requests = await to_thread.run_sync(self._turn, n)
        return requests  # noqa: RET504  # mypy sees that a scope may swallow what is raised in it

    def _turn(self, n: int) -> Sequence[Request]:
        if (reason := self._until()) is not None:
            self._book.stop(reason)
        return self._book.trade(self._taken(), n)

    def _taken(self) -> list[Reading]:
        """What has arrived; taken in the thread, since a host that is cancelled may never come so far."""
        return [self._arrived.popleft() for _ in range(len(self._arrived))]

    def found(self) -> Bought:
        self._book.look()
        return Bought(self._book.readings(), self._book.spent, self._book.stop_reason)

    def leave(self) -> None:
        """Tell what is left to tell, and leave."""
        error = self._error
        self._book.close(self._taken())
        untold = tuple(self._book.untold)
        if isinstance(error, StoreDownError):
            error.readings = untold
        elif untold:
            log.warning("%d answers came back and are not in the book; they count as lost", len(untold))

    async def _answer(self, request: Request) -> None:
        try:
            # no await between the reply and here: what came back is told, also when the run is cancelled
            held = self._book.most(request)
            reading = await self._buy(request, held)
            try:
                self._book.sampler.check(reading)
            except EvalbudgetError as ex:  # it is paid all the same
                self._arrived.append(Reading(request, None, reading.cost, str(ex)))
                raise
            self._arrived.append(reading)
            if reading.cost > held + 1e-9:
                raise BudgetError(
                    f"request {request.id} cost {reading.cost:g}, but at most {held:g} was held for it; give "
                    "drive() the highest cost of one request"
                )
        except Exception as ex:
            self._error = self._error or ex
        finally:
            self._in_flight -= 1
            self._changed.set()


async def _bought(answer: Answer, request: Request, held: float) -> Reading:
    """What came back, with or without a score; a failure costs what was held for it."""
    try:
        return _as_reading(request, await _awaitable(answer(request)), held)
    except EvalbudgetError:
        raise
    except anyio.get_cancelled_exc_class() as ex:
        if anyio.current_effective_deadline() == -math.inf:
            raise  # the run is being cancelled
        # a cancellation that leaked out of the host's own tasks must not end the run in silence
        return Reading(request, None, held, f"cancelled by the host: {ex!r}")
    except Exception as ex:  # the host's: whatever it is, this score was not had
        return Reading(request, None, held, said_by(ex))


def _awaitable(answer: Awaitable[T]) -> Awaitable[T]:
    if not inspect.isawaitable(answer):
        raise InvalidInputError("answer is a plain function; drive() needs an async one (async def)")
    return answer


def _as_reading(request: Request, answer: Reading | float | None, held: float) -> Reading:
    if isinstance(answer, Reading):
        if answer.request != request:
            raise InvalidInputError(
                f"asked request {request.id}, got a reading of request {answer.request.id}; "
                "answer() must return the reading of the request it was given"
            )
        return answer
    if answer is None:
        return Reading(request, None, held, "no score")
    try:
        value = float(answer)
    except (TypeError, ValueError):
        raise InvalidInputError(
            f"answer() returned {answer!r} for request {request.id}; return a Reading, a number or None"
        ) from None
    return Reading(request, value, held)
