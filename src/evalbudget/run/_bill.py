r"""The bill: what calls have cost, and a cap on it that holds.

Every call is reserved at the most that it can cost before it is sent, and settled at what it did cost when
its reply is there. What is spent and reserved never exceeds the cap, as long as no call costs more than
:meth:`~evalbudget.prices.Tariff.most` says. On file, one JSON object per line::

    {"evalbudget": "bill", "format": 1, "version": "0.1.0", "unit": "usd", "cap": 5.0}
    {"hold": 0, "model": "openai/gpt-4o-mini", "most": 0.0009, "sample": "aB3", "role": "judge"}
    {"end": 0, "cost": 0.0002, "why": "answered", "tokens": 412}

A call that a kill cut off has no end, and counts at the most that it can cost.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import RLock
from types import MappingProxyType
from typing import Any, Protocol

from evalbudget._version import __version__
from evalbudget.budget import Budget, Unit, shown_amount
from evalbudget.errors import BudgetError, JournalError, reason
from evalbudget.prices import Tariff, Usage
from evalbudget.run._json_lines import LinesFile, read_line, whole_lines

FORMAT = 1
ANSWERED = "answered"
REFUSED = "refused by the server, or never sent"
UNKNOWN = "no usage in the reply: counted at the most that it can cost"
LOST = "no reply: counted at the most that it can cost"
CUT_OFF = "under way when the process ended: counted at the most that it can cost"
_ROUNDING = 1e-12

Follows = Mapping[str, Sequence[tuple[str, float]]]
"""Calls that are still to follow, by sample: the model of each, and what it costs at most."""
_NOTHING: Follows = MappingProxyType({})


@dataclass(slots=True)
class Hold:
    """A call that is under way.

    Attributes:
        number: of the hold, from 0.
        model: that is asked.
        most: reserved for it, in units of the budget.
        bound: the most that it can cost; above ``most`` only where a risk is accepted.
        sample: for which it is made; empty if for none.
        role: what the model does, such as ``model`` or ``grader``.
        ended: its cost is known.
    """

    number: int
    model: str
    most: float
    bound: float
    sample: str = ""
    role: str = ""
    ended: bool = False


@dataclass(slots=True)
class BillRow:
    """What calls of one model in one role cost.

    Attributes:
        model: that was asked.
        role: what it did.
        calls: that are billed.
        cost: of them, in units of the budget.
        tokens: as far as replies said.
        unknown: calls among them that count at the most that they can cost, since no usage is known.
        unknown_cost: of these.
    """

    model: str
    role: str
    calls: int = 0
    cost: float = 0.0
    tokens: int = 0
    unknown: int = 0
    unknown_cost: float = 0.0


class Lines(Protocol):
    """Where a bill is recorded."""

    def append(self, entry: dict[str, Any]) -> None:
        """Add a line; it is kept when this returns."""

    def close(self) -> None:
        """Let them go."""


class KeptLines(Lines, Protocol):
    """Where one is recorded that is no file."""

    @property
    def path(self) -> str:
        """Where they are, for people."""

    def read(self) -> bytes:
        """All lines there are."""


class Bill:
    """Keeps a cap on what calls cost; for several threads at once.

    Args:
        cap: in US dollars or tokens.
        tariff: what calls cost, in the same unit.
        risk: the accepted chance that what is under way costs more than was reserved for it. Above 0, what is
            reserved for a call is no longer the most that it can cost but what calls of its model cost so
            far: of n shares of the most, the ceil((n + 1)(1 - risk/m))-th smallest with m calls under way
            (Vovk et al. 2005, conformal prediction: the next one exceeds it with chance risk/m at most where
            calls are exchangeable).
        lines: where to record; None for nowhere.

    Attributes:
        cap: in units of ``tariff``.
        spent: by calls that have ended, by earlier runs too.
        held: reserved for calls under way.
        room: kept for calls that are still to follow.
        over: what calls cost above what was reserved for them.
        cut_off: calls that were under way when an earlier process ended, by role.
        most_of_sample: the largest amount that one sample had spent and reserved at a time, so far: with so
            much free for each sample that begins, none is cut off on its way.

    Raises:
        BudgetError: cap and tariff differ in their unit, or the risk is no chance.
    """

    def __init__(self, cap: Budget, tariff: Tariff, *, risk: float = 0.0, lines: Lines | None = None) -> None:
        if cap.unit is not tariff.unit:
            raise BudgetError(f"a cap in {cap.unit.value} cannot be kept by prices in {tariff.unit.value}")
        if not 0.0 <= risk < 1.0:
            raise BudgetError(f"--risk is {risk:g}; write a chance from 0 (the cap holds) to below 1")
        self.cap = cap
        self.tariff = tariff
        self.risk = risk
        self._lines = lines
        self._lock = RLock()
        self.room = 0.0
        self._room: dict[str, float] = {}
        self._clear()

    def _clear(self) -> None:
        """As before the first call."""
        self.spent = 0.0
        self.held = 0.0
        self._subtracted = 0  # calls, since all that is held was summed
        self.over = 0.0
        self.cut_off: Counter[str] = Counter()
        self.most_of_sample = 0.0
        self._open: dict[int, Hold] = {}
        self._count = 0
        self._of_sample: dict[str, float] = {}
        self._held_of: dict[str, float] = {}
        self._rows: dict[tuple[str, str], BillRow] = {}
        self._shares: dict[str, list[float]] = {}

    @classmethod
    def on_file(cls, path: Path, cap: Budget, tariff: Tariff, *, risk: float = 0.0) -> Bill:
        """Begin a bill, or go on with one; what was under way when it was left counts as spent.

        Args:
            path: of the file.
            cap: as above.
            tariff: as above.
            risk: as above.

        Raises:
            JournalError: the file is no bill or damaged, or another process writes it.
            BudgetError: it is in another unit.
        """
        if not path.exists():
            bill = cls(cap, tariff, risk=risk, lines=LinesFile.create(path))
            bill._write(_header(cap))
            return bill
        lines, entries = LinesFile.open(path, _parse)
        return cls(cap, tariff, risk=risk, lines=lines)._gone_on(entries, path)

    @classmethod
    def on_lines(cls, lines: KeptLines, cap: Budget, tariff: Tariff, *, risk: float = 0.0) -> Bill:
        """The same, of lines that are kept elsewhere.

        Raises:
            JournalError: they are no bill, or damaged.
            BudgetError: it is in another unit.
        """
        entries, _ = _parse(lines.read(), lines.path)
        return cls(cap, tariff, risk=risk, lines=lines)._gone_on(entries, lines.path)

    def _gone_on(self, entries: Sequence[dict[str, Any]], where: Path | str) -> Bill:
        assert self._lines is not None
        try:
            if entries and entries[0]["unit"] != self.cap.unit.value:
                raise BudgetError(
                    f"{where} was begun with a budget in {entries[0]['unit']}, and this one is in "
                    f"{self.cap.unit.value}; go on with the same unit, or begin anew in another folder"
                )
            if not entries:
                self._write(_header(self.cap))
            self._replay(entries, where)
        except BaseException:
            self._lines.close()
            raise
        return self

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

    def clear_room(self, sample: str) -> None:
        """Nothing more follows of a sample."""
        with self._lock:
            if self._room.pop(sample, 0.0):
                self.room = math.fsum(self._room.values())

    def room_of(self, samples: Iterable[str]) -> float:
        """What is kept for calls of these that are still to follow."""
        with self._lock:
            return math.fsum(self._room.get(sample, 0.0) for sample in samples)

    def look(self) -> None:
        """Take in what other processes did, where they share the bill; for whoever waits."""

    def again(self, hold: Hold) -> bool:
        """The call is sent once more, and its first sending may be billed; False if that does not fit."""
        with self._lock:
            if hold.ended or not self._fits(hold.most):
                return False
            second = Hold(self._count, hold.model, hold.most, hold.bound, hold.sample, hold.role)
            self._write(as_entry(second))
            self._hold(second)
            self.lose(second)
            return True

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
        """Let the file go; calls that are still under way count as lost."""
        with self._lock:
            for hold in list(self._open.values()):
                self.lose(hold)
            if self._lines is not None:
                self._lines.close()
                self._lines = None

    # what is known

    @property
    def free(self) -> float:
        """What may still be reserved."""
        return max(0.0, self.cap.amount - self.spent - self.held - self.room)

    @property
    def is_blank(self) -> bool:
        """Whether no call was ever put on it."""
        return self._count == 0

    @property
    def under_way(self) -> int:
        """Calls that have not ended."""
        return len(self._open)

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
    def rows(self) -> Sequence[BillRow]:
        """By model and role, the dearest first."""
        return sorted(self._rows.values(), key=lambda row: (-row.cost, row.model, row.role))

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

    def _put_aside(
        self, model: str, calls: Sequence[tuple[float, str]], role: str, follows: Follows
    ) -> list[Hold]:
        with self._lock:
            holds = self._would_hold(model, calls, role, follows)
            for hold in holds:
                self._write(as_entry(hold))
                self._hold(hold)
            if holds:
                self._keep_room(follows)
            return holds

    def _keep_room(self, follows: Follows) -> None:
        self._room |= self._needed(follows)
        self.room = math.fsum(self._room.values())

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
        """Whether what is kept as room was not spent: by other processes, or by calls that cost more."""
        return amount <= max(0.0, self.cap.amount - self.spent - self.held) + _ROUNDING * self.cap.amount

    def _reserved(self, model: str, bound: float, *, beside: int = 0) -> float:
        shares = self._shares.get(model, ())
        if not self.risk or not shares:
            return bound
        at = math.ceil((len(shares) + 1) * (1.0 - self.risk / (len(self._open) + beside + 1)) - 1e-9)
        return bound if at > len(shares) else bound * min(1.0, shares[at - 1])

    def _hold(self, hold: Hold) -> None:
        self._count = hold.number + 1
        self._open[hold.number] = hold
        self.held += hold.most
        if hold.sample:
            self._held_of[hold.sample] = held = self._held_of.get(hold.sample, 0.0) + hold.most
            spent = self._of_sample.get(hold.sample, 0.0)
            self.most_of_sample = max(self.most_of_sample, spent + held)

    def _end(self, hold: Hold, cost: float, why: str, tokens: int) -> float:
        with self._lock:
            if hold.ended:
                return 0.0
            self._write(as_end(hold.number, cost, why, tokens))
            self._count_in(hold, cost, why, tokens)
            self._keep_again(hold, why)
            return cost

    def _keep_again(self, hold: Hold, why: str) -> None:
        """Room for what was refused: it is sent again, or its sample clears its room."""
        if why == REFUSED and hold.sample in self._room:
            self._room[hold.sample] += hold.most
            self.room = math.fsum(self._room.values())

    def _count_in(self, hold: Hold, cost: float, why: str, tokens: int) -> None:
        hold.ended = True
        del self._open[hold.number]
        if self.risk and why == ANSWERED and hold.bound > 0:
            insort(self._shares.setdefault(hold.model, []), cost / hold.bound)
        self.held -= hold.most
        self._subtracted += 1
        if self._subtracted >= len(self._open):  # anew, before errors of rounding add up
            self.held, self._subtracted = math.fsum(each.most for each in self._open.values()), 0
        self.spent += cost
        self.over += max(0.0, cost - hold.most)
        self._of_sample[hold.sample] = self._of_sample.get(hold.sample, 0.0) + cost
        if hold.sample:
            self._held_of[hold.sample] -= hold.most
        if why == REFUSED:
            return
        row = self._rows.setdefault((hold.model, hold.role), BillRow(hold.model, hold.role))
        row.calls += 1
        row.cost += cost
        row.tokens += tokens
        self.cut_off[hold.role] += why == CUT_OFF
        if why in (LOST, UNKNOWN, CUT_OFF):
            row.unknown += 1
            row.unknown_cost += cost

    def _replay(self, entries: Sequence[dict[str, Any]], where: Path | str) -> None:
        """Repeat a bill that was left; what was under way then counts as spent."""
        for number, entry in enumerate(entries[1:], start=2):
            try:
                self._take(entry)
            except (ArithmeticError, LookupError, TypeError, ValueError) as ex:
                raise JournalError(f"{where}, line {number} is damaged: {ex}") from ex
        for hold in list(self._open.values()):
            self._end(hold, hold.bound, CUT_OFF, 0)

    def _take(self, entry: dict[str, Any]) -> None:
        if "hold" in entry:
            most = as_amount(entry["most"])
            bound = as_amount(entry.get("bound", most))
            number = int(entry["hold"])
            if number < self._count:
                raise ValueError(f"call {number} begins twice")
            model, sample, role = (str(entry[name]) for name in ("model", "sample", "role"))
            self._hold(Hold(number, model, most, bound, sample, role))
            return
        hold = self._open.get(entry["end"])
        if hold is None:
            raise ValueError(f"it ends call {entry['end']!r}, which was not under way")
        self._count_in(hold, as_amount(entry["cost"]), str(entry["why"]), int(entry["tokens"]))

    def _write(self, entry: dict[str, Any]) -> None:
        if self._lines is not None:
            self._lines.append(entry)


def spent_on(path: Path) -> tuple[Unit, dict[str, float]]:
    """What the calls of a bill on file cost, those under way at the most; nothing is written.

    Returns:
        Its unit, and costs by sample; those of no sample have an empty name.

    Raises:
        JournalError: the file is no bill, is damaged, or cannot be read.
    """
    try:
        data = path.read_bytes()
    except OSError as ex:
        remedy = "name the bill in it, or move it away" if path.is_dir() else "give a bill that can be read"
        raise JournalError(f"{path} is no bill of evalbudget ({reason(ex)}); {remedy}") from ex
    return spent_in(data, path)


def spent_in(data: bytes, where: Path | str) -> tuple[Unit, dict[str, float]]:
    """The same, of a bill's lines.

    Args:
        data: the lines.
        where: they are, for messages.

    Raises:
        JournalError: they are no bill, or damaged.
    """
    entries, _ = _parse(data, where)
    if not entries:
        return Unit.USD, {}
    try:
        unit = Unit(entries[0]["unit"])
    except ValueError as ex:
        raise JournalError(f"{where} is damaged: {ex}") from ex
    bill = Bill(Budget(1.0, unit), Tariff(unit))
    bill._replay(entries, where)
    return unit, dict(bill._of_sample)


def _header(cap: Budget) -> dict[str, Any]:
    return {
        "evalbudget": "bill",
        "format": FORMAT,
        "version": __version__,
        "unit": cap.unit.value,
        "cap": cap.amount,
    }


def as_entry(hold: Hold) -> dict[str, Any]:
    """The line of a call that begins."""
    entry: dict[str, Any] = {
        "hold": hold.number,
        "model": hold.model,
        "most": hold.most,
        "sample": hold.sample,
        "role": hold.role,
    }
    if hold.bound != hold.most:
        entry["bound"] = hold.bound
    return entry


def as_end(hold: int, cost: float, why: str, tokens: int) -> dict[str, Any]:
    """The line of one that has ended."""
    return {"end": hold, "cost": cost, "why": why, "tokens": tokens}


def as_amount(value: Any) -> float:
    """Money or tokens.

    Raises:
        TypeError, ValueError: it is none.
    """
    found = float(value)
    if not 0.0 <= found < math.inf:
        raise ValueError(f"{value!r} is no amount")
    return found


def _parse(data: bytes, path: Path | str) -> tuple[list[dict[str, Any]], int]:
    lines, whole = whole_lines(data, path)
    entries = [
        read_line(line, f"{path}, line {number}", lambda entry: entry)
        for number, line in enumerate(lines, start=1)
    ]
    if entries and (entries[0].get("evalbudget") != "bill" or "unit" not in entries[0]):
        raise JournalError(f"{path} is no bill of evalbudget; move it away")
    if entries and entries[0].get("format") != FORMAT:
        raise JournalError(
            f"{path} has format {entries[0].get('format')!r} (evalbudget {entries[0].get('version')}); this "
            f"version reads format {FORMAT}. Install the version that wrote it, or begin in another folder"
        )
    return entries, whole
