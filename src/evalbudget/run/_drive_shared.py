"""drive() with a store: this process buys its part of what several buy together."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Sequence

import anyio
from anyio import to_thread

from evalbudget.design import Reading, Request
from evalbudget.errors import StoreDownError
from evalbudget.journal import Journal
from evalbudget.run._purchase import check_promise
from evalbudget.run._shared_purchase import SharedPurchase

_LOOK = 0.1
"""Seconds after which a worker with a free hand looks again what others did."""


async def drive_shared(
    purchase: SharedPurchase, buy: Callable[[Request], Awaitable[Reading]], concurrency: int
) -> Journal:
    """Buy until nothing is left to buy for any worker.

    Args:
        purchase: of all workers; closed at the end.
        buy: one score; raises only what is to end this worker.
        concurrency: how many requests this worker may have in flight.

    Returns:
        What all workers bought.
    """
    run = _Worker(purchase, buy)
    try:
        await run.until_done(concurrency)
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(run.leave)
    return purchase.journal


class _Worker:
    def __init__(self, purchase: SharedPurchase, buy: Callable[[Request], Awaitable[Reading]]) -> None:
        self._arrived: deque[Reading] = deque()
        self._purchase = purchase
        self._buy = buy
        self._in_flight = 0
        self._error: Exception | None = None
        self._changed = anyio.Event()

    async def until_done(self, concurrency: int) -> None:
        async with anyio.create_task_group() as group:
            while self._error is None:
                try:
                    requests = await self.trade(concurrency - self._in_flight)
                except Exception as ex:  # raised below, outside of the group, lest it becomes a group too
                    self._error = ex
                    break
                self._in_flight += len(requests)
                for request in requests:
                    group.start_soon(self._answer, request)
                if not self._in_flight and not self._arrived and self._purchase.finished:
                    break
                with anyio.move_on_after(_LOOK if self._in_flight < concurrency else None):
                    await self._changed.wait()
            # where the store is away, calls under way still come back, and are handed to the caller
            if self._error is not None and not isinstance(self._error, StoreDownError):
                group.cancel_scope.cancel()
        if self._error is not None:
            raise self._error

    async def trade(self, n: int) -> Sequence[Request]:
        """Tell what has arrived, and ask for up to so many; in a thread, since the store may make it wait."""
        self._changed = anyio.Event()
        requests: Sequence[Request] = ()
        with anyio.CancelScope(shield=True):
            requests = await to_thread.run_sync(self._trade, n)
        return requests  # noqa: RET504  # mypy sees that a scope may swallow what is raised in it

    def _trade(self, n: int) -> Sequence[Request]:
        # taken in the thread: a host that is cancelled may never come so far
        return self._purchase.trade([self._arrived.popleft() for _ in range(len(self._arrived))], n)

    def leave(self) -> None:
        """Tell what is left to tell, and leave the others."""
        error, patience = self._error, None
        try:
            if not isinstance(error, StoreDownError):
                self._trade(0)
        except StoreDownError as ex:
            error = ex
            raise
        finally:
            if isinstance(error, StoreDownError):
                error.readings = (*self._purchase.untold, *self._arrived)
                patience = 0.0
            self._purchase.close(patience=patience)

    async def _answer(self, request: Request) -> None:
        try:
            # no await between the reply and here: what came back is told, also when the run is cancelled
            reading = await self._buy(request)
            self._arrived.append(reading)
            check_promise(reading, self._purchase.cost)
        except Exception as ex:
            self._error = self._error or ex
        finally:
            self._in_flight -= 1
            self._changed.set()
