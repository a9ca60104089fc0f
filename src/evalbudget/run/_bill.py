"""The bill: what calls have cost, and a cap on it that holds.

Every call is reserved at the most that it can cost before it is sent, and settled at what it did cost when
its reply is there. What is spent and reserved never exceeds the cap, as long as no call costs more than
:meth:`~evalbudget.prices.Tariff.most` says. A bill goes with its process, unless its calls are kept as rows
of a database.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from threading import RLock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from evalbudget.budget import Budget, shown_amount
from evalbudget.errors import BudgetError, JournalError
from evalbudget.prices import Tariff, Usage
from evalbudget.run._sums import ANSWERED, LOST, REFUSED, UNKNOWN, Hold, Sums

if TYPE_CHECKING:  # it brings SQLAlchemy
    from evalbudget.run._bill_rows import BillRows, Turn

T = TypeVar("T")

_ROUNDING = 1e-12

Follows = Mapping[str, Sequence[tuple[str, float]]]
"""Calls that are still to follow, by sample: the model of each, and what it costs at most."""
_NOTHING: Follows = MappingProxyType({})


class Bill(Sums):
    """Keeps a cap on what calls cost; for several threads at once.

    Args:
        cap: in US dollars or tokens.
        tariff: what calls cost, in the same unit.
        risk: the accepted chance that what is under way costs more than was reserved for it. Above 0, what is
            reserved for a call is no longer the most that it can cost but what calls of its model cost so
            far: of n shares of the most, the ceil((n + 1)(1 - risk/m))-th smallest with m calls under way
            (Vovk et al. 2005, conformal prediction: the next one exceeds it with chance risk/m at most where
            calls are exchangeable).

    Attributes:
        cap: in units of ``tariff``.
        tariff: as given.
        room_of_others: what other processes keep for calls that are still to follow.
        opened: what is closed with it.

    Raises:
        BudgetError: cap and tariff differ in their unit, or the risk is no chance.
    """

    def __init__(self, cap: Budget, tariff: Tariff, *, risk: float = 0.0) -> None:
        if cap.unit is not tariff.unit:
            raise BudgetError(f"a cap in {cap.unit.said} cannot be kept by prices in {tariff.unit.said}")
        if not 0.0 <= risk < 1.0:
            raise BudgetError(f"--risk is {risk:g}; write a chance from 0 (the cap holds) to below 1")
        self.cap = cap
        self.tariff = tariff
        self.room_of_others = 0.0
        self.opened = ExitStack()
        self._is_closed = False  # one that was kept
        self._changes = 0  # of rows that are known
        self._lock = RLock()
        self._room: dict[str, float] = {}
        self._kept: BillRows | None = None
        super().__init__(risk)

    def keep(self, rows: BillRows) -> None:
        """From now on every call is one of these rows."""
        self._kept = rows

    # before a call

    def reserve(
        self,
        model: str,
        input_tokens: int,
        output_tokens: int | None,
        *,
        sample: str = "",
        role: str = "",
        seconds: float = 0.0,
    ) -> Hold | None:
        """Put aside what a call costs at most; None, and nothing put aside, if that does not fit.

        Args:
            model: that is asked.
            input_tokens: that the call has at most.
            output_tokens: that its reply has at most; None for what the price says.
            sample: for which it is made.
            role: what the model does.
            seconds: that it takes at most, as far as anybody knows; for prices of time.

        Raises:
            BudgetError: nobody knows the price, or nothing limits the reply.
            JournalError: it cannot be recorded.
        """
        holds = self.reserve_all(model, [(input_tokens, output_tokens, sample)], role=role, seconds=seconds)
        return holds[0] if holds else None

    def reserve_all(
        self,
        model: str,
        calls: Sequence[tuple[int, int | None, str]],
        *,
        role: str = "",
        seconds: float = 0.0,
        follows: Follows = _NOTHING,
    ) -> list[Hold]:
        """Put aside what several calls cost at most; nothing put aside, and none, if they do not all fit.

        Args:
            model: that is asked.
            calls: tokens of input at most, of the reply at most, and the sample; as in :meth:`reserve`.
            role: what the model does.
            seconds: that each takes at most.
            follows: what has to be paid after these calls, lest they be in vain. Room is kept for just that,
                by sample, until a later call says otherwise or :meth:`clear_room` is called.

        Raises:
            BudgetError: nobody knows the price, or nothing limits the reply.
            JournalError: it cannot be recorded.
        """
        bounds = [(self.tariff.most(model, given, reply, seconds), name) for given, reply, name in calls]
        return self._put_aside(model, bounds, role, follows)

    def may_fit(
        self, model: str, input_tokens: int, output_tokens: int | None, *, under_way: int = 0
    ) -> bool:
        """Whether such a call would fit if all that is under way cost nothing: whether waiting may help.

        Args:
            model: that is asked.
            input_tokens: that the call has at most.
            output_tokens: that its reply has at most; None for what the price says.
            under_way: calls that were so before it did not fit; other threads may have ended them since.
        """
        with self._lock:
            most = self._reserved(model, self.tariff.most(model, input_tokens, output_tokens))
            return bool(self._open or under_way) and most <= self.cap.amount - self.spent

    @property
    def room(self) -> float:
        """What is kept for calls that are still to follow."""
        with self._lock:
            return math.fsum(self._room.values())

    def room_of(self, samples: Iterable[str]) -> float:
        """The same, for calls of these."""
        with self._lock:
            return math.fsum(self._room.get(sample, 0.0) for sample in samples)

    def clear_room(self, sample: str) -> None:
        """Nothing more follows of a sample."""
        with self._lock:
            self._room.pop(sample, None)

    def look(self) -> None:
        """Take in what other processes did, where they share the bill; for whoever waits."""

    def again(self, hold: Hold) -> bool:
        """The call is sent once more, and its first sending may be billed; False if that does not fit."""

        def again(turn: Turn | None) -> bool:
            fits = not hold.ended and self._fits(hold.most)
            if fits:
                self._add(turn, hold, hold.bound, LOST, 0)
            return fits

        fits = self._once(again)
        if fits:
            self._has_ended(hold, hold.bound, LOST, 0)
        return fits

    def add(self, hold: Hold, cost: float, why: str, tokens: int) -> None:
        """A call that was reserved on another bill, and has ended, is on this one, too."""
        self._once(lambda turn: self._add(turn, hold, cost, why, tokens))

    # after it

    def settle(self, hold: Hold, usage: Usage | None) -> float:
        """The reply is there; what it cost. Without a plausible usage, the most that it can cost."""
        if usage is None or not usage.is_plausible:
            return self._end(hold, hold.bound, UNKNOWN, 0)
        cost = self.tariff.cost(hold.model, usage)
        if not math.isfinite(cost) or cost < 0:
            return self._end(hold, hold.bound, UNKNOWN, 0)
        return self._end(hold, cost, ANSWERED, usage.tokens)

    def lose(self, hold: Hold) -> float:
        """No reply came, and it may be billed all the same: the most that it can cost counts."""
        return self._end(hold, hold.bound, LOST, 0)

    def release(self, hold: Hold) -> None:
        """It was refused or never sent: nothing is billed."""
        self._end(hold, 0.0, REFUSED, 0)

    def close(self) -> None:
        """Nothing more is asked; calls that are still under way count as lost, however they end later."""
        with self._lock:
            left = list(self._open.values())
        try:
            with self.opened:
                for hold in left:
                    self.lose(hold)
        finally:
            self._is_closed = self._kept is not None

    # what is known

    @property
    def free(self) -> float:
        """What may still be reserved."""
        with self._lock:
            return max(0.0, self._left - self.room)

    @property
    def _left(self) -> float:
        """What calls that room is kept for may use, too."""
        return self.cap.amount - self.spent - self.held - self.room_of_others

    def has_room(self, under_way: Iterable[str]) -> bool:
        """Whether one more sample fits at the most that one has needed so far, beside those under way."""
        with self._lock:
            needed = [self.of_sample(one) + self._held_of.get(one, 0.0) for one in under_way]
            most = self.most_of_sample
            reserved = sum(max(0.0, most - own) for own in needed)
            return self._fits(most + reserved)

    def of_sample(self, sample: str) -> float:
        """What ended calls of a sample cost so far."""
        return self._of_sample.get(sample, 0.0)

    def wasted(self, useful: float) -> float:
        """What was spent beside what was ``useful``, which are sums of floats."""
        left = self.spent - useful
        return left if left > 1e-9 * self.cap.amount else 0.0

    @property
    def text(self) -> str:
        """What was paid to whom, in a sentence."""
        unit = self.cap.unit
        rows = [
            f"{row.model}{f' as {row.role}' if row.role else ''} {shown_amount(row.cost, unit)} for "
            f"{row.calls:,} calls"
            for row in self.rows
        ]
        unknown = sum(row.unknown for row in self.rows)
        told = f"; {unknown:,} of them count at the most that they can cost" if unknown else ""
        spent = f"Paid {shown_amount(self.spent, unit)} of {self.cap}"
        return f"{spent}: {', '.join(rows)}{told}." if rows else f"{spent}."

    # bookkeeping

    def _once(self, act: Callable[[Any], T]) -> T:
        """Do this in whole or not at all; what is kept nowhere has no turns."""
        if self._is_closed:
            raise JournalError("the bill is closed, and would not know of this call; open it again to go on")
        return self._locked(act)(None) if self._kept is None else self._kept.turns.once(self._locked(act))

    def _later(self, act: Callable[[Any], object]) -> None:
        """Do this once, with what is done next at the latest."""
        if self._kept is None or self._is_closed:
            self._locked(act)(None)
        else:
            self._kept.turns.later(self._locked(act))

    def _locked(self, act: Callable[[Any], T]) -> Callable[[Any], T]:
        def locked(turn: Any) -> T:
            with self._lock:
                return act(turn)

        return locked

    def _put_aside(
        self, model: str, calls: Sequence[tuple[float, str]], role: str, follows: Follows
    ) -> list[Hold]:
        before = {sample: self._room.get(sample) for sample in follows}

        def hold(turn: Turn | None) -> list[Hold]:
            holds = self._would_hold(model, calls, role, follows)
            for each in holds:
                self._begins(turn, each)
            if holds:
                self._room |= self._needed(follows)
            return holds

        try:
            return self._once(hold)
        except BaseException:
            self._restore_room(before)
            raise

    def _restore_room(self, before: Mapping[str, float | None]) -> None:
        with self._lock:
            for sample, room in before.items():
                self._room.pop(sample, None)
                if room is not None:
                    self._room[sample] = room

    def _needed(self, follows: Follows) -> dict[str, float]:
        return {
            sample: math.fsum(self._reserved(*call) for call in calls) for sample, calls in follows.items()
        }

    def _would_hold(
        self, model: str, calls: Sequence[tuple[float, str]], role: str, follows: Follows
    ) -> list[Hold]:
        """What would be put aside for calls that cost so much at most; none if they do not all fit."""
        holds = [
            Hold(self._count + i, model, self._reserved(model, bound, beside=i), bound, sample, role)
            for i, (bound, sample) in enumerate(calls)
        ]
        most = sum(hold.most for hold in holds)
        more = sum(self._needed(follows).values()) - self.room_of(follows)
        return holds if self._fits(most + more) and self._is_there(most) else []

    def _fits(self, amount: float) -> bool:
        return amount <= self.free + _ROUNDING * self.cap.amount

    def _is_there(self, amount: float) -> bool:
        """Whether what is kept as room was not spent by calls that cost more."""
        return amount <= max(0.0, self._left) + _ROUNDING * self.cap.amount

    def _end(self, hold: Hold, cost: float, why: str, tokens: int) -> float:
        again = hold.most if why == REFUSED else 0.0  # it is sent again, or its sample clears its room
        with self._lock:
            if hold.ended:
                return 0.0
            hold.ended = True
            self._keep_again(hold.sample, again)
        try:
            self._later(lambda turn: self._ends(turn, hold.number, cost, why, tokens))
        except BaseException:
            hold.ended = False
            self._keep_again(hold.sample, -again)
            raise
        self._has_ended(hold, cost, why, tokens)
        return cost

    def _has_ended(self, hold: Hold, cost: float, why: str, tokens: int) -> None:
        """A call of this process, of which others may not know yet."""

    def _keep_again(self, sample: str, amount: float) -> None:
        with self._lock:
            if amount and sample in self._room:
                self._room[sample] += amount

    # in a turn

    def begin(self, turn: Turn, why: str) -> None:
        """Stand there from now on; calls that an earlier process of this number left are lost, and why.

        Raises:
            BudgetError: what stands there is in another unit.
        """
        assert self._kept is not None
        unit = self._kept.sign(turn, self.cap.unit)
        if unit is not self.cap.unit:
            raise BudgetError(
                f"its bill was begun with a budget in {unit.said}, and this one is in "
                f"{self.cap.unit.said}; go on with the same unit, or begin anew in another folder"
            )
        self._lose(turn, turn.me, why)

    def take_in(self, turn: Turn, *, anew: bool) -> None:
        """What others did; anew, where nobody knows how far the last turn got.

        Raises:
            ArithmeticError, LookupError, TypeError, ValueError: a row is damaged.
        """
        assert self._kept is not None
        with self._lock:
            sums = Sums(self.risk) if anew else self  # others read meanwhile what is known so far
            known = 0 if anew else self._changes
            for number, hold, end in self._kept.changed(turn.connection, known):
                sums.take(hold, end)
                known = number
            if anew:
                vars(self).update(vars(sums))
            self._changes = known

    def _begins(self, turn: Turn | None, hold: Hold) -> None:
        self._hold(hold)
        if turn is not None and self._kept is not None:
            hold.worker = turn.me
            self._changes += 1
            self._kept.begin(turn, hold, self._changes)

    def _add(self, turn: Turn | None, hold: Hold, cost: float, why: str, tokens: int) -> None:
        own = replace(hold, number=self._count, reached=0.0)
        self._begins(turn, own)
        self._ends(turn, own.number, cost, why, tokens)

    def _ends(self, turn: Turn | None, number: int, cost: float, why: str, tokens: int) -> None:
        hold = self._open.get(number)
        if hold is None:  # its process was taken for gone
            return
        self._count_in(hold, cost, why, tokens)
        if turn is not None and self._kept is not None:
            self._changes += 1
            self._kept.end(turn, number, cost, why, tokens, self._changes)

    def _lose(self, turn: Turn, worker: int, why: str) -> None:
        """A process is gone: what it had under way counts at the most that it can cost."""
        with self._lock:
            for hold in [each for each in self._open.values() if each.worker == worker]:
                self._ends(turn, hold.number, hold.bound, why, 0)
