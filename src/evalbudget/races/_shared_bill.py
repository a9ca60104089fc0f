"""The bill of a race that several processes share: it is part of what the store of the race keeps."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from evalbudget.budget import Budget
from evalbudget.prices import Tariff
from evalbudget.run import Bill, Hold
from evalbudget.run._bill import LOST, as_end, as_entry

_LOOK = 0.25  # seconds between two looks at what others did, of a call that does not fit

Body = dict[str, Any]


class Workers(Protocol):
    """Those that share a bill, as one of them sees them."""

    @property
    def all_sent(self) -> bool:
        """Whether nothing is left for the next turn."""

    def do_if(self, kind: str, make: Callable[[], Body | None]) -> Any:
        """Have all of them repeat what this gives with nothing missed, unless it is None; what came of it."""

    def do_later(self, kind: str, body: Body) -> None:
        """Have all of them repeat this, in the next turn."""

    def look(self) -> None:
        """Take in what the others did."""


class SharedBill(Bill):
    """Keeps a cap on what the calls of several processes cost, those under way at any of them included.

    A call is in the store before it is sent. What it cost goes there with whatever its process does next:
    until then it counts at the most that it can cost.

    Args:
        cap: in US dollars or tokens.
        tariff: what calls cost here; the others need it of no model that only this process asks.
        risk: as of a :class:`~evalbudget.run.Bill`.
        workers: who share it.
    """

    def __init__(self, cap: Budget, tariff: Tariff, workers: Workers, *, risk: float = 0.0) -> None:
        super().__init__(cap, tariff, risk=risk)
        self._workers = workers
        self._look_again = 0.0

    def _clear(self) -> None:
        super()._clear()
        self._owner: dict[int, int] = {}

    # what this process does

    def look(self) -> None:
        """Take in what other processes did, a few times a second at most."""
        if not self._workers.all_sent or time.monotonic() >= self._look_again:
            self._look_again = time.monotonic() + _LOOK
            self._workers.look()

    def again(self, hold: Hold) -> bool:
        """The call is sent once more, and its first sending may be billed; False if that does not fit."""

        def again() -> Body | None:
            if hold.ended or not self._fits(hold.most):
                return None
            return _as_body([hold])

        second: list[Hold] | None = self._workers.do_if("again", again)
        with self._lock:
            for each in second or ():
                self._write(as_entry(each))
                self._write(as_end(each.number, each.bound, LOST, 0))
        return second is not None

    def copy_to(self, own: Bill) -> None:
        """From now on what the calls of this process cost is recorded where this bill is, too."""
        self._lines = own._lines

    def close(self) -> None:
        """Let the copy go; what is under way counts as lost when this process is known to be gone."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None

    def _put_aside(self, model: str, calls: Sequence[tuple[float, str]], role: str) -> list[Hold]:
        looked = self._workers.all_sent and time.monotonic() < self._look_again
        if looked and not self._locked_look(model, calls, role):
            return []  # as it was a moment ago

        def hold() -> Body | None:
            holds = self._locked_look(model, calls, role)
            return _as_body(holds) if holds else None

        held: list[Hold] | None = self._workers.do_if("hold", hold)
        if held is None:
            self._look_again = time.monotonic() + _LOOK
        try:
            with self._lock:
                for each in held or ():
                    self._write(as_entry(each))
        except BaseException:
            for each in held or ():
                self.release(each)
            raise
        return held or []

    def _locked_look(self, model: str, calls: Sequence[tuple[float, str]], role: str) -> list[Hold]:
        with self._lock:
            return self._would_hold(model, calls, role)

    def _end(self, hold: Hold, cost: float, why: str, tokens: int) -> float:
        with self._lock:
            if hold.ended:
                return 0.0
            hold.ended = True
        self._workers.do_later("end", {"hold": hold.number, "cost": cost, "why": why, "tokens": tokens})
        with self._lock:
            self._write(as_end(hold.number, cost, why, tokens))
        return cost

    # what all of them repeat

    def restart(self) -> None:
        """As before the first call."""
        with self._lock:
            self._clear()

    def repeat(self, kind: str, worker: int, body: Mapping[str, Any]) -> list[Hold]:
        """What a worker did; the calls that it holds room for."""
        with self._lock:
            if kind == "end":
                self._ends(body["hold"], body["cost"], body["why"], body["tokens"])
                return []
            holds = [
                Hold(self._count + i, body["model"], most, bound, sample, body["role"])
                for i, (most, bound, sample) in enumerate(body["calls"])
            ]
            for hold in holds:
                self._hold(hold)
                self._owner[hold.number] = worker
                if kind == "again":
                    self._ends(hold.number, hold.bound, LOST, 0)
            return holds

    def lose_those_of(self, workers: Collection[int]) -> None:
        """These processes are gone: what they had under way counts at the most that it can cost."""
        with self._lock:
            for number, owner in list(self._owner.items()):
                if owner in workers:
                    self._ends(number, self._open[number].bound, LOST, 0)

    @property
    def owners(self) -> Collection[int]:
        """Processes that have calls under way."""
        return set(self._owner.values())

    def _ends(self, number: int, cost: float, why: str, tokens: int) -> None:
        hold = self._open.get(number)
        if hold is not None:  # else its process was taken for gone
            del self._owner[number]
            self._count_in(hold, cost, why, tokens)


def _as_body(holds: Sequence[Hold]) -> Body:
    """Of calls of one model in one role."""
    calls = [[hold.most, hold.bound, hold.sample] for hold in holds]
    return {"model": holds[0].model, "role": holds[0].role, "calls": calls}
