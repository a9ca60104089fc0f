"""The bill of a race that several processes share: every call is a row beside the race's book."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import bindparam, insert, select, update

from evalbudget.book import Book, Turn
from evalbudget.book._tables import MONEY, PAID_CALLS
from evalbudget.budget import Budget
from evalbudget.prices import Tariff
from evalbudget.run import Bill, Hold
from evalbudget.run._bill import LOST, Follows, as_amount, as_end, as_entry
from evalbudget.store._sql import change, rows

_LOOK = 0.25  # seconds between two looks at what others did, of a call that does not fit

_KEPT = ("spent", "held", "most_of_sample")
_NUMBERS = (*_KEPT, "calls", "changes")
_MONEY, _NO_MONEY, _BEGIN = select(MONEY), insert(MONEY), insert(PAID_CALLS)
_KEEP = update(MONEY).values({name: bindparam(f"new_{name}") for name in _NUMBERS})
_CHANGED = select(PAID_CALLS).where(PAID_CALLS.c.changed > bindparam("after")).order_by(PAID_CALLS.c.changed)
_END = (
    update(PAID_CALLS)
    .where(PAID_CALLS.c.call == bindparam("which"))
    .values({name: bindparam(f"new_{name}") for name in ("cost", "why", "tokens", "changed")})
)


class SharedBill(Bill):
    """Keeps a cap on what the calls of several processes cost, those under way at any of them included.

    A call is in the store before it is sent. What it cost goes there with whatever its process does next:
    until then it counts at the most that it can cost. Room for calls that are still to follow is this
    process's own: others do not see it, and may spend it.

    Args:
        cap: in US dollars or tokens.
        tariff: what calls cost here; the others need it of no model that only this process asks.
        risk: as of a :class:`~evalbudget.run.Bill`.
    """

    def __init__(self, cap: Budget, tariff: Tariff, *, risk: float = 0.0) -> None:
        super().__init__(cap, tariff, risk=risk)
        self._book: Book
        self._own: dict[str, float] = {}  # what samples of this process cost
        self._n_copied, self._copied = 0, dict[int, int]()  # calls in the copy; their numbers in it
        self._look_again = 0.0

    def _clear(self) -> None:
        super()._clear()
        self._owner: dict[int, int] = {}  # of calls under way
        self._changes, self._is_changed = 0, False

    def share(self, book: Book) -> None:
        """Stand beside this book from now on; calls that an earlier process of its name left are lost."""
        self._book = book
        book.add(self)
        book.once(self._begin)

    def _begin(self, turn: Turn) -> None:
        if not rows(turn.connection, _MONEY):
            change(turn.connection, _NO_MONEY, {"id": 1, **dict.fromkeys(_NUMBERS, 0)})
        self.bury(turn, turn.me)

    # what this process does

    def look(self) -> None:
        """Take in what other processes did, a few times a second at most."""
        if not self._book.is_told or time.monotonic() >= self._look_again:
            self._look_again = time.monotonic() + _LOOK
            self._book.refresh()

    def of_sample(self, sample: str) -> float:
        """What ended calls of a sample cost so far, also those of which the others do not know yet."""
        return self._own[sample] if sample in self._own else super().of_sample(sample)

    def again(self, hold: Hold) -> bool:
        """The call is sent once more, and its first sending may be billed; False if that does not fit."""

        def again(turn: Turn) -> Hold | None:
            with self._lock:
                if hold.ended or not self._fits(hold.most):
                    return None
                second = Hold(self._count, hold.model, hold.most, hold.bound, hold.sample, hold.role)
                self._begins(turn, second)
                self._ends(turn, second.number, second.bound, LOST, 0)
                return second

        second = self._book.once(again)
        if second is None:
            return False
        with self._lock:
            self._own[hold.sample] = self._own.get(hold.sample, 0.0) + second.bound
            self._copy(second)
            self._copy_end(second, second.bound, LOST, 0)
        return True

    def copy_to(self, own: Bill) -> None:
        """From now on what the calls of this process cost is recorded where this bill is, too."""
        self._lines, self._n_copied = own._lines, own._count

    def _copy(self, hold: Hold) -> None:
        """Calls have numbers of their own there, since threads come here in any order."""
        self._write(as_entry(replace(hold, number=self._n_copied)))
        self._copied[hold.number] = self._n_copied
        self._n_copied += 1

    def _copy_end(self, hold: Hold, cost: float, why: str, tokens: int) -> None:
        if (number := self._copied.pop(hold.number, None)) is not None:
            self._write(as_end(number, cost, why, tokens))

    def close(self) -> None:
        """Let the copy go; what is under way counts as lost when this process is known to be gone."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None

    def _put_aside(
        self, model: str, calls: Sequence[tuple[float, str]], role: str, follows: Follows
    ) -> list[Hold]:
        looked = self._book.is_told and time.monotonic() < self._look_again
        if looked and not self._locked_look(model, calls, role, follows):
            return []  # as it was a moment ago

        def hold(turn: Turn) -> list[Hold]:
            with self._lock:
                holds = self._would_hold(model, calls, role, follows)
                for each in holds:
                    self._begins(turn, each)
                if holds:
                    self._keep_room(follows)
                return holds

        held = self._book.once(hold)
        if not held:
            self._look_again = time.monotonic() + _LOOK
        try:
            with self._lock:
                for each in held:
                    self._copy(each)
        except BaseException:
            for each in held:
                self.release(each)
            raise
        return held

    def _locked_look(
        self, model: str, calls: Sequence[tuple[float, str]], role: str, follows: Follows
    ) -> list[Hold]:
        with self._lock:
            return self._would_hold(model, calls, role, follows)

    def _end(self, hold: Hold, cost: float, why: str, tokens: int) -> float:
        with self._lock:
            if hold.ended:
                return 0.0
            hold.ended = True
            self._own[hold.sample] = self._own.get(hold.sample, 0.0) + cost
            self._keep_again(hold, why)
        self._book.later(lambda turn: self._ends(turn, hold.number, cost, why, tokens))
        with self._lock:
            self._copy_end(hold, cost, why, tokens)
        return cost

    # in a turn

    def take_in(self, turn: Turn, *, anew: bool) -> None:
        """What others did; anew, where nobody knows how far the last turn got."""
        row = next(iter(rows(turn.connection, _MONEY)), None)
        with self._lock:
            if anew:
                self._clear()
            if row is None or row.changes <= self._changes:
                return
            for each in rows(turn.connection, _CHANGED, {"after": self._changes}):
                self._take_in_call(each)
            self._count, self._changes = int(row.calls), int(row.changes)
            self.spent, self.held, self.most_of_sample = (as_amount(getattr(row, name)) for name in _KEPT)

    def _take_in_call(self, row: Any) -> None:
        number = int(row.call)
        if number not in self._open:
            model, sample, role = (str(getattr(row, name)) for name in ("model", "sample", "role"))
            self._hold(Hold(number, model, as_amount(row.most), as_amount(row.bound), sample, role))
            self._owner[number] = int(row.worker)
        if row.cost is not None:
            del self._owner[number]
            self._count_in(self._open[number], as_amount(row.cost), str(row.why), int(row.tokens))

    def bury(self, turn: Turn, worker: int) -> None:
        """A process is gone: what it had under way counts at the most that it can cost."""
        with self._lock:
            for number in [call for call, owner in self._owner.items() if owner == worker]:
                self._ends(turn, number, self._open[number].bound, LOST, 0)

    def write(self, turn: Turn) -> None:
        """What would have to be summed."""
        if self._is_changed:
            kept = {f"new_{name}": getattr(self, name) for name in _KEPT}
            kept |= {"new_calls": self._count, "new_changes": self._changes}
            change(turn.connection, _KEEP, kept)
            self._is_changed = False

    def _begins(self, turn: Turn, hold: Hold) -> None:
        self._hold(hold)
        self._owner[hold.number] = turn.me
        self._changes, self._is_changed = self._changes + 1, True
        row = {name: getattr(hold, name) for name in ("model", "role", "sample", "most", "bound")}
        row |= {"call": hold.number, "worker": turn.me, "changed": self._changes}
        change(turn.connection, _BEGIN, row | dict.fromkeys(("cost", "why", "tokens")))

    def _ends(self, turn: Turn, number: int, cost: float, why: str, tokens: int) -> None:
        with self._lock:
            hold = self._open.get(number)
            if hold is None:  # its process was taken for gone
                return
            del self._owner[number]
            self._count_in(hold, cost, why, tokens)
            self._changes, self._is_changed = self._changes + 1, True
        new = {"cost": cost, "why": why, "tokens": tokens, "changed": self._changes}
        change(turn.connection, _END, {"which": number, **{f"new_{name}": v for name, v in new.items()}})
