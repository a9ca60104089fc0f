"""One purchase by several processes or machines: every worker repeats what all of them did, in one order.

The store holds the steps; a worker that wants something takes the store's lock, repeats the steps that it has
missed on a sampler and a ledger of its own, adds its own steps, and lets go. So all workers decide as one
process would have that saw the same order of completion, and the budget holds over all of them.
"""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection

from evalbudget._asked import AskedSampler, Eligible
from evalbudget._version import __version__
from evalbudget.budget import Budget, Unit
from evalbudget.design import Cell, Reading, Request
from evalbudget.errors import EvalbudgetError, InvalidInputError, ReplayError, SamplerError
from evalbudget.journal import Event, repeat
from evalbudget.run._purchase import RUN_AGAIN, UNANSWERED, Flight, Purchase
from evalbudget.run._shared_steps import Kind, asked, asked_request, reading_of, told
from evalbudget.shown import shown_logger
from evalbudget.store import Address, Replica, Step, StepLog, Terms

T = TypeVar("T")

log = shown_logger(__name__)


class SharedPurchase(Replica, Purchase):
    """A purchase of which this process is one worker.

    :attr:`ledger`, :attr:`tally`, :attr:`journal` and :attr:`flights` are of all workers together, as of the
    last time that this one looked. If the store cannot be reached, methods wait for up to a minute. What
    came back meanwhile is told as soon as possible.

    Args:
        sampler: fresh; every worker gives one like it.
        budget: what may be spent by all workers.
        store: a path, or ``postgresql://user@host/database#name``; begun if nothing is there.
        cost: the highest cost of one request.
        cost_of: the highest cost of a given cell, where they differ; at most ``cost``.
        about: what else must be the same for all workers, such as the task; JSON values.
        worker: name of this worker; an earlier one of the same name is taken to be dead. None: a new one.
        lease: seconds without a sign of life after which others take over what a worker has under way; its
            highest cost counts as spent then.
        clock: seconds since 1970; of use for files only, a server has its own.

    Raises:
        StoreError: the store holds something else, or belongs to a purchase with another sampler, seed,
            design, budget or version.
        StoreDownError: it cannot be reached.
        InvalidInputError: the address cannot be read, or the lease is not above 0.
    """

    def __init__(
        self,
        sampler: AskedSampler,
        budget: Budget,
        store: str | Path,
        *,
        cost: float = 1.0,
        cost_of: Callable[[Cell], float] | None = None,
        about: Mapping[str, Any] | None = None,
        worker: str | None = None,
        lease: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not lease > 0.0:
            raise InvalidInputError(f"the lease is {lease:g} s; give more than 0")
        self._fresh = deepcopy(sampler)
        self._terms = cost, cost_of
        name = worker or f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"
        settings = {**sampler.config, "budget": str(budget), "cost": cost, **(about or {})}
        terms = Terms(__version__, sampler.design.fingerprint, settings)
        Replica.__init__(self, StepLog(Address.parse(store), terms, name, lease, clock))
        self._untold: list[Reading] = []
        self._held: set[int] = set()  # requests that the caller has
        self._budget = budget
        self._restart()
        self.look()

    def _restart(self) -> None:
        cost, cost_of = self._terms
        Purchase.__init__(self, deepcopy(self._fresh), self._budget, cost=cost, cost_of=cost_of)
        self._owner: dict[int, int] = {}  # worker that has a request
        self._waiting: dict[int, Request] = {}  # asked, and with nobody
        self._lost: dict[tuple[int, int], float] = {}  # what a request counts for that a worker had
        self._told: dict[int, int] = {}  # worker that told a reading
        self._requests: dict[int, Request] = {}
        self._buyers: set[int] = set()  # workers that were given a request

    # what the caller does

    def buy(self, n: int = 1, *, eligible: Eligible | None = None) -> Sequence[Request]:
        """Up to n requests, as many as can be paid; those first that another worker had and lost.

        Empty with :attr:`outstanding` requests means wait, also for what other workers have under way.
        """
        return self.trade((), n, eligible=eligible)

    def tell(self, reading: Reading) -> None:
        """A request came back, with or without a score; it is in the store when this returns."""
        self.trade((reading,), 0)

    def trade(
        self, readings: Sequence[Reading], n: int, *, eligible: Eligible | None = None
    ) -> Sequence[Request]:
        """:meth:`tell` these and :meth:`buy` as many at one go, which is quicker.

        Raises:
            StoreDownError: the store could not be reached; what was told is kept for the next call.
            ReplayError: this sampler would have decided otherwise than another worker's.
        """
        with self._guard:
            self._untold.extend(readings)
            requests = self._turn(lambda: self._buy(n, eligible))
            self._held.update(request.id for request in requests)
        return requests

    def withdraw(self, request: Request) -> None:
        """It was not sent: another worker, or a later run, may."""
        self._call(lambda call: Step(self.worker, Kind.WITHDRAW, request.id, body={"call": call}))
        self._held.discard(request.id)

    def pay(self, cost: float, reason: str = UNANSWERED, *, calls: float | None = None) -> None:
        """Calls were paid for beside those of the readings, and teach nothing."""
        self._call(
            lambda call: Step(
                self.worker, Kind.PAY, None, cost, {"reason": reason, "calls": calls, "call": call}
            )
        )

    def pays(self, cost: float, reason: str = UNANSWERED, *, calls: float | None = None) -> bool:
        """As :meth:`pay`, if the budget of all pays for it; False, and nothing paid, if it does not."""
        paid = False

        def step(call: int) -> Step | None:
            nonlocal paid
            paid = cost <= self.ledger.free + 1e-9
            body = {"reason": reason, "calls": calls, "call": call}
            return Step(self.worker, Kind.PAY, None, cost, body) if paid else None

        self._call(step)
        return paid

    def stop(self, reason: str) -> None:
        """Ask nothing more, by whichever worker; what is under way may still come back."""
        self._turn(lambda: self._step(Step(self.worker, Kind.STOP, body={"reason": reason})))

    def look(self) -> None:
        """Take in what other workers did."""
        self._turn(lambda: None)

    def close(self, *, patience: float | None = None) -> None:
        """Leave the purchase; what this worker has under way counts as spent and goes to others.

        Args:
            patience: seconds to wait for a store that cannot be reached; None as long as ever.
        """
        with self._guard:
            self._log.close(signs_off=True, patience=patience)

    @property
    def worker(self) -> int:
        """Number of this worker, from 0."""
        return self._log.worker

    @property
    def held(self) -> tuple[Request, ...]:
        """Requests that this worker has under way."""
        return tuple(self._requests[each] for each, owner in self._owner.items() if owner == self.worker)

    def processes(self) -> tuple[str, ...]:
        """Names of the workers that were given requests, each once, in the order they came."""
        return self._log.names(self._buyers)

    @property
    def untold(self) -> tuple[Reading, ...]:
        """Readings that the store does not have yet, since it could not be reached."""
        return tuple(self._untold)

    @property
    def outstanding(self) -> int:
        """Requests under way, at all workers, and those that wait for one that takes them."""
        payable = self.stopped is None and sum(
            self.cost_of(request.cell) <= self.ledger.free + 1e-9 for request in self._waiting.values()
        )
        return len(self.flights) + payable

    @property
    def finished(self) -> bool:
        """Nothing is under way, and nothing more will be asked."""
        return not self.outstanding and super().finished

    # a turn

    def _turn(self, act: Callable[[], T]) -> T:
        def whole() -> T:
            for reading in tuple(self._untold):
                self._take_in(reading)
            return act()

        with self._guard:
            found = super()._turn(whole)
            self._untold.clear()
        return found

    def _before_turn(self, connection: Connection) -> None:
        others = {worker for worker in self._owner.values() if worker != self.worker}
        for worker in others & self._log.replaced.union(self._log.silent(connection)):
            self._lose(worker)

    def _lose(self, worker: int) -> None:
        lost = [request for request, owner in self._owner.items() if owner == worker]
        log.warning(
            "worker %d gave no sign of life; %d requests that it had are asked again", worker, len(lost)
        )
        for request in lost:
            self._step(Step(worker, Kind.LOSE, request, self.flights[request].promised))

    def _take_in(self, reading: Reading) -> None:
        request = reading.request.id
        if self._requests.get(request) != reading.request:
            self._untold.remove(reading)
            raise SamplerError(
                f"a reading of request {request} ({reading.request.cell}), which was never asked; tell what "
                "buy() returned"
            )
        bearer = self._bearer(request)
        owned = self._owner.get(request) == self.worker or (request, bearer) in self._lost
        if request not in self._told:
            try:
                self._step(told(bearer, reading))
            except EvalbudgetError:  # the sampler's: it cannot be told at any other time either
                self._untold.remove(reading)
                raise
        elif owned:
            body = {"reason": RUN_AGAIN, "calls": self._calls(1.0)}
            self._step(Step(bearer, Kind.PAY, request, reading.cost, body))
        self._held.discard(request)

    def _bearer(self, request: int) -> int:
        """Which worker's the request is: this one, or an earlier one of its name that has it or lost it."""
        owner = self._owner.get(request)
        if owner == self.worker or (request, self.worker) in self._lost:
            return self.worker
        if owner is not None and owner in self._log.replaced:
            return owner
        return next((w for w in self._log.replaced if (request, w) in self._lost), self.worker)

    def _buy(self, n: int, eligible: Eligible | None) -> list[Request]:
        if not n:
            return []
        found = [  # handed out in a turn whose end was not known
            self._requests[request]
            for request, owner in self._owner.items()
            if owner == self.worker and request not in self._held
        ][:n]
        for request in [each for each in self._waiting.values() if each.id not in self._held]:
            if len(found) == n or self.stopped is not None:
                break
            cost = self.cost_of(request.cell)
            if cost <= self.ledger.free + 1e-9 and (eligible is None or eligible(request.cell)):
                self._step(Step(self.worker, Kind.TAKE, request.id, cost))
                found.append(request)
        stopped = self.sampler.stop_reason
        for request in super().buy(n - len(found), eligible=eligible):
            flight = self.flights[request.id]
            step = asked(self.worker, request, flight.promised, restricted=eligible is not None)
            self._requests[request.id] = request
            self._owner[request.id] = self.worker
            self._buyers.add(self.worker)
            self._note(step)
            found.append(request)
        if stopped != self.sampler.stop_reason:
            body = {"reason": self.sampler.stop_reason}
            self._note(Step(self.worker, Kind.DECIDE, body=body))
        return found

    # steps

    def _note(self, step: Step) -> None:
        """Something of one's own that is done already."""
        self._seen += 1
        self._new.append(step)

    def _apply(self, step: Step) -> None:
        if step.kind == Kind.ASK:
            self._ask_again(step)
        elif step.kind == Kind.TELL:
            self._tell_again(step)
        elif step.kind == Kind.LOSE:
            flight = self._land(step)
            self.ledger.settle(flight.promised, step.cost)
            self.tally.lose(step.cost, calls=self._calls(1.0))
            self._wait(flight.request)
            self._lost[flight.request.id, step.worker] = step.cost
        elif step.kind == Kind.TAKE:
            assert step.request is not None
            request = self._waiting.pop(step.request)
            self._fly(request, step)
        elif step.kind == Kind.WITHDRAW:
            self._withdraw(step)
        elif step.kind == Kind.PAY:
            if step.request is not None:
                self._give_back(step)
                if self._owner.get(step.request) == step.worker:
                    self.ledger.settle(self._land(step).promised, 0.0)
            self.ledger.settle(0.0, step.cost)
            self.tally.lose(step.cost, step.body["reason"], calls=step.body["calls"])
        elif step.kind == Kind.DECIDE:
            self._decide_again(step)
        elif step.kind == Kind.STOP:
            super().stop(step.body["reason"])
        else:
            raise ValueError(f"nobody takes a step {step.kind!r}")

    def _withdraw(self, step: Step) -> None:
        """What it was taken to cost is given back; where others took it meanwhile, it is theirs."""
        assert step.request is not None
        self._give_back(step)
        if self._owner.get(step.request) == step.worker:
            flight = self._land(step)
            self.ledger.settle(flight.promised, 0.0)
            self._wait(flight.request)

    def _wait(self, request: Request) -> None:
        """For whoever takes it, unless it has a reading already."""
        if request.id not in self._told:
            self._waiting[request.id] = request

    def _ask_again(self, step: Step) -> None:
        request = asked_request(step)
        event = Event(request, restricted=step.body.get("restricted", False))
        given = repeat(self.sampler, event)
        if given != (request,):
            raise self._disagrees(str(request), str(given[0]) if given else "nothing")
        self.journal.append(event)
        self._requests[request.id] = request
        self._fly(request, step)

    def _decide_again(self, step: Step) -> None:
        given = self.sampler.ask(1, eligible=lambda cell: False)
        if given or self.sampler.stop_reason != step.body["reason"]:
            raise self._disagrees(step.body["reason"], self.sampler.stop_reason or "nothing")

    def _disagrees(self, theirs: str, ours: str) -> ReplayError:
        return ReplayError(
            f"{self._log.address}: another worker's sampler answered {theirs}, and this one "
            f"answers {ours}; run the same code everywhere"
        )

    def _tell_again(self, step: Step) -> None:
        assert step.request is not None
        reading = reading_of(step, self._requests[step.request])
        self._give_back(step)
        owner = self._owner.get(step.request)
        if owner == step.worker:
            self.ledger.settle(self._land(step).promised, 0.0)
        elif owner is None:  # it came after all, before anybody else took it
            self._waiting.pop(step.request, None)
        self._told[step.request] = step.worker
        self.ledger.settle(0.0, reading.cost)
        self.journal.append(Event(reading.request, reading))
        self._count(reading)
        self.sampler.tell([reading])

    def _fly(self, request: Request, step: Step) -> None:
        self.ledger.promised += step.cost
        self.flights[request.id] = Flight(request, step.cost)
        self._owner[request.id] = step.worker
        self._buyers.add(step.worker)

    def _land(self, step: Step) -> Flight:
        assert step.request is not None
        del self._owner[step.request]
        return self.flights.pop(step.request)

    def _give_back(self, step: Step) -> None:
        """What was taken for lost came back: what it really cost counts instead."""
        assert step.request is not None
        lost = self._lost.pop((step.request, step.worker), None)
        if lost is not None:
            self.ledger.spent -= lost
            self.tally.lose(-lost, calls=self._calls(-1.0))

    def _calls(self, calls: float) -> float | None:
        return None if self.ledger.budget.unit is Unit.SCORES else calls
