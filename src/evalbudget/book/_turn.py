"""What happens under the lock of a book: calls are claimed, come back, are lost, given back, paid beside."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from sqlalchemy import Connection

from evalbudget.book._copy import Copy, Kept, is_adopted
from evalbudget.book._notes import packed
from evalbudget.book._others import check_numbers
from evalbudget.book._passes import Left, Passes
from evalbudget.book._statements import (
    A_CALL,
    BEGIN_CALL,
    BEGIN_PASS,
    BEGIN_ROUND,
    CALL,
    CUT_OFF,
    FORGET_NOTE,
    IS_TOLD,
    KEEP,
    LOST,
    LOST_BY,
    NEVER_SENT,
    SETTLE,
    TAKEN_BY,
    TOO_LATE,
    UPSERT,
    WHOSE,
    WITHDRAW,
)
from evalbudget.book._tables import NO_CELL
from evalbudget.budget import Budget
from evalbudget.cells import CAME, CLOSED, OPEN, TAKEN, Planned
from evalbudget.design import Cell, Reading, Request
from evalbudget.errors import BudgetError
from evalbudget.sampler import Sampler
from evalbudget.statistics._bounds import IntArray
from evalbudget.store import Database
from evalbudget.store._sql import Change

_NO_CALL = -1
_NO_REPLY = (LOST, CUT_OFF, NEVER_SENT, TOO_LATE)
_SLACK = 1e-9


class Claim(NamedTuple):
    """A call that a worker has.

    Attributes:
        cell: number of its cell.
        most: its highest cost.
        request: what is asked.
        attempt: which call of its model and item it is, from 0.
    """

    cell: int
    most: float
    request: Request
    attempt: int


Most: TypeAlias = float | Sequence[float] | Callable[[Cell], float]
"""The highest cost of one call, of a call for each item, or of one for a given cell."""


class Till:
    """What may be spent, and what a call costs at most.

    Args:
        budget: what may be spent in all.
        most: the highest cost of calls.
        at_once: how many cells may be under way, of all workers; None: any number.

    Raises:
        BudgetError: the highest cost is none.

    Attributes:
        budget: what may be spent in all.
        has_answers: whether the caller has answers that cost nothing.
    """

    def __init__(self, budget: Budget, most: Most, at_once: Callable[[], float] | None) -> None:
        self.budget, self._most, self._at_once = budget, most, at_once
        self.has_answers = False
        self._least = 0.0 if callable(most) else min(map(self._checked, _each(most)))

    def free(self, copy: Copy) -> float:
        """Of the budget, neither spent nor held; below 0 where what is held was promised by a larger one."""
        about = copy.about
        return float(min(self.budget.amount, about["cap"]) - about["spent"] - about["held"])

    def fits(self, copy: Copy, cost: float) -> bool:
        """Whether it is no more than what is free."""
        return cost <= self.free(copy) + _SLACK

    def affords_any(self, copy: Copy) -> bool:
        """Whether some call could be paid."""
        return self.has_answers or (self.fits(copy, self._least) and self.free(copy) > _SLACK)

    def may(self, copy: Copy, most: float) -> bool:
        """Whether a cell that costs so much can be asked now."""
        return not most or (self.fits(copy, most) and self.room(copy) >= 1)

    def room(self, copy: Copy) -> float:
        """How many more cells may be under way."""
        return math.inf if self._at_once is None else self._at_once() - copy.under_way

    def cost(self, cell: Cell) -> float:
        """What a call costs at most, of a cell as :meth:`Copy.asked_next` has it.

        Raises:
            BudgetError: the caller says what is no cost.
        """
        if callable(self._most):
            return self._checked(self._most(cell))
        return self._most[cell.item] if isinstance(self._most, Sequence) else self._most

    def _checked(self, most: float) -> float:
        if not (math.isfinite(most) and (most > 0.0 or (self.has_answers and most == 0.0))):
            raise BudgetError(f"the highest cost of a call is {most:g}; give a finite cost above zero")
        return most


def _each(most: float | Sequence[float]) -> Sequence[float]:
    return most if isinstance(most, Sequence) else (most,)


def texts_of(sampler: Sampler, planned: Planned) -> dict[str, str | None]:
    """What is kept of a round, by column."""
    if is_adopted(planned):
        return {"planned": packed(tuple(planned), ()), "note": None}
    cells, note = planned._replace(note=None), packed(planned.note, sampler.note_kinds)
    return {"planned": packed(tuple(cells), ()), "note": note}


class Turn:
    """One worker's turn; written by :meth:`write` at its end, in whole or not at all.

    Args:
        copy: of the book, as of now.
        db: the book's.
        connection: that has the lock.
        me: number of the worker.
        till: what may be spent.
        is_sure: whether all that this worker wrote before is known to be written, or not to be.

    Attributes:
        connection: that has the lock.
        me: number of the worker.
        where: the book is.
        is_sure: whether all that this worker wrote before is known to be written, or not to be.
        about: numbers of the book, as this turn changes them.
        storable: what the database can keep of a text.
    """

    def __init__(
        self, copy: Copy, db: Database, connection: Connection, me: int, till: Till, *, is_sure: bool
    ) -> None:
        self.connection, self.me, self.where = connection, me, db.address
        self.storable, self.is_sure = db.storable, is_sure
        self._copy, self.about, self._db, self._till = copy, copy.about, db, till
        self._before = dict(copy.about)
        self._changes: list[Change] = []
        self._cells: dict[int, dict[str, Any]] = {}
        self._calls: list[dict[str, Any]] = []
        self._begun: dict[int, dict[str, Any]] = {}
        self._settled: dict[int, dict[str, Any]] = {}

    # what is asked

    def begin(self, planned: Planned, texts: Mapping[str, str | None]) -> None:
        """A round was planned; ``texts`` are what is kept of it, see :func:`texts_of`."""
        self._changes.append((FORGET_NOTE, [{"before": self.about["rounds"] - 1}]))
        self._changes.append((BEGIN_ROUND, [{"round": self.about["rounds"], **texts}]))
        self.about["rounds"] += 1
        self._copy.begin(planned)

    def begin_pass(self, ask: IntArray) -> None:
        """Cells that are handed out next."""
        self._changes.append((BEGIN_PASS, [{"pass": self.about["passes"], "cells": packed(ask, ())}]))
        self.about["passes"] += 1
        self._copy.begin_pass(ask)

    def close(self, cell: int) -> None:
        """It is given up for good."""
        self._change(cell, state=CLOSED)

    def fits(self, cost: float) -> bool:
        """Whether it is no more than what is free."""
        return self._till.fits(self._copy, cost)

    def claim(
        self, n: int | Callable[[int], int], found: Mapping[int, Claim], mine: Mapping[int, Claim]
    ) -> dict[int, Claim]:
        """Calls until there are n with those that were found before, of each model or in all.

        Args:
            n: how many, or how many of each model.
            found: since the caller asked.
            mine: that this worker had before.
        """
        new: dict[int, Claim] = {}
        if n and not self.is_sure:  # handed out in a turn whose end was not known
            new = {call: one for call, one in self.taken().items() if call not in found and call not in mine}
        if self.about["stopped"] is None:
            if callable(n):
                had = Counter(c.request.cell.model for each in (found, new) for c in each.values() if c.most)
                self._claim_by_model(lambda model: n(model) - had[model], new)
            else:
                self._claim(n - len(found), new)
        return new

    def _claim(self, n: int, new: dict[int, Claim]) -> None:
        copy, till = self._copy, self._till
        while len(new) < n and (first := copy.waiting.first()) is not None:
            cell = copy.asked_next(first)
            if not till.may(copy, most := till.cost(cell)):  # it stays the first
                return
            claim = self.call(first, most, cell.epoch)
            new[claim.request.id] = claim

    def _claim_by_model(self, room: Callable[[int], int], new: dict[int, Claim]) -> None:
        copy, till = self._copy, self._till
        assert isinstance(copy.waiting, Passes)

        def cost(cell: int) -> float:
            return till.cost(copy.asked_next(cell))

        left = Left(till.free(copy) + _SLACK, till.room(copy), till.has_answers)
        for cell in copy.waiting.by_model(room, cost, left):
            claim = self.call(cell, cost(cell))
            new[claim.request.id] = claim

    def call(self, cell: int, most: float, attempt: int | None = None, begun: float = 0.0) -> Claim:
        """Hand a cell out, as the next call of its model and item, or the one of this number."""
        call = int(self.about["calls"])
        now = self._copy.hand_out(cell, call, attempt)
        request = self._copy.request(call, cell)
        self.about["held"] += most
        self._add_call(cell, most, attempt=now.attempt, begun=begun)
        self._keep(cell, self.me, now)
        return Claim(cell, most, request, now.attempt)

    def taken(self, worker: int | None = None) -> dict[int, Claim]:
        """What this worker, or another one, has under way, by the number of the call."""
        rows = self.connection.execute(TAKEN_BY, {"whose": self.me if worker is None else worker}).all()
        of = self._copy.of  # some may have come back in this turn
        return self._claims([r for r in rows if (of("state", r.cell), of("call", r.cell)) == (TAKEN, r.call)])

    def lost(self) -> dict[int, Claim]:
        """What this worker had when it was taken for dead, and nobody has told of."""
        return self._claims(self.connection.execute(LOST_BY, {"whose": self.me}).all())

    def _claims(self, rows: Sequence[Any]) -> dict[int, Claim]:
        try:
            for row in rows:
                check_numbers(row, whole=("call", "cell", "attempt"), real=("most",))
                if row.attempt < 0:
                    raise ValueError(f"call {row.call} is number {row.attempt} of its item")
        except ValueError as ex:
            raise self._copy.damaged(ex) from ex
        return {
            row.call: Claim(row.cell, row.most, self._copy.request(row.call, row.cell), row.attempt)
            for row in rows
        }

    def begin_call(self, call: int, by_now: float) -> None:
        """The host has begun a call of this worker's, and so much may be billed by now."""
        self._begun[call] = {"which": call, "by_now": by_now}

    def withdraw(self, model: int, why: str) -> None:
        """Ask a model nothing more."""
        if model not in self._copy.why_withdrawn:
            asked, why = self._copy.cells().asked, self.storable(why)
            self._changes.append((WITHDRAW, [{"model": model, "asked": asked, "why": why}]))
            self.about["withdrawn"] += 1
            self._copy.withdraw(model, asked, why)

    def pay(self, cost: float, why: str, begun: float | None = None) -> None:
        """Pay for what is of no cell; so much of it may be billed by now, or all."""
        self.about["spent"] += cost
        by_now = cost if begun is None else begun
        self._add_call(NO_CELL, cost, cost=cost, error=self.storable(why), begun=by_now)

    # what becomes of calls

    def take_in(self, claim: Claim, reading: Reading) -> None:
        """A call came back."""
        cell, call, most, cost = claim.cell, reading.request.id, claim.most, reading.cost
        was = self._copy.kept(cell)
        if was.call != call or was.state in (CAME, CLOSED):  # taken for dead, and others have gone on
            self.about["spent"] += cost - most
            self._settle(call, cost, TOO_LATE)
            self._change_of_others(cell, cost=was.cost + cost - most)
            return
        lost, before = was.lost, was.cost
        if was.state == TAKEN:
            self.about["held"] -= most
        else:  # taken for dead, and counted at the most
            self.about["spent"] -= most
            lost, before = lost - 1, before - most
        self.about["spent"] += cost
        new = {"lost": lost, "cost": before + cost, "passed": self.about["passes"]}
        now = self._copy.score(cell, was, reading.value, **new)
        self._settle(call, cost, reading.error and self.storable(reading.error))
        self._keep(cell, self.me, now)

    def came_before(self, call: int) -> bool:
        """Whether it came back already, in a turn whose end was not known."""
        return not self.is_sure and self.connection.scalar(IS_TOLD, {"which": call}) is not None

    def score_again(self, readings: Sequence[Reading]) -> None:
        """Calls that came back have other scores than they had, or one, or none."""
        for reading in readings:
            call, row = reading.request.id, self._row(reading.request.id)
            was = self._copy.kept(row.cell)
            if row.cost is None or row.error in _NO_REPLY:
                continue
            if was.call != call or was.state not in (OPEN, CAME):  # asked again meanwhile
                continue
            self._settle(call, row.cost, reading.error and self.storable(reading.error))
            self._keep(row.cell, self.me, self._copy.score(row.cell, was, reading.value))

    def bury(self, worker: int) -> int:
        """A worker is gone: what it has under way counts at the most, and is asked again; how many calls."""
        lost = self.taken(worker)
        for call in lost:
            self._lose(self._row(call), LOST)
        return len(lost)

    def lose(self, calls: Sequence[int], why: str) -> None:
        """Nobody knows whether these were answered: they count at the most, and are asked again."""
        for call in calls:
            row = self._row(call)
            if row.cost is None:
                self._lose(row, why)
            elif row.error == LOST:
                self._settle(call, row.cost, why)

    def _lose(self, row: Any, why: str) -> None:
        self.about["held"] -= row.most
        self.about["spent"] += row.most
        self._settle(row.call, row.most, why)
        was = self._copy.kept(row.cell)
        self._change(row.cell, state=OPEN, lost=was.lost + 1, cost=was.cost + row.most)

    def give_back(self, calls: Sequence[int]) -> None:
        """They were never sent: it is as if they had not been handed out, also where they count as lost."""
        for call in calls:
            row = self._row(call)
            was_lost = row.error == LOST
            if row.cost is not None and not was_lost:  # in a turn whose end was not known
                continue
            was = self._copy.kept(row.cell)
            self.about["spent" if was_lost else "held"] -= row.most
            self._settle(call, 0.0, NEVER_SENT)
            new: dict[str, Any] = {"tries": was.tries - 1}
            if was_lost:
                new |= {"lost": was.lost - 1, "cost": was.cost - row.most}
            if was.call == call and was.state in (OPEN, TAKEN):
                self._change(row.cell, state=OPEN, call=_NO_CALL, **new)
            else:  # others had it since
                self._change_of_others(row.cell, **new)

    def _row(self, call: int) -> Any:
        return self.connection.execute(A_CALL, {"which": call}).one()

    def _change_of_others(self, cell: int, **new: Any) -> None:
        """Change what is counted of a cell, and leave it with whoever has it."""
        whose = int(self.connection.scalar(WHOSE, {"which": cell}) or 0)
        self._keep(cell, whose, self._copy.change(cell, new))

    # what is written

    def _change(self, cell: int, **new: Any) -> None:
        self._keep(cell, self.me, self._copy.change(cell, new))

    def _keep(self, cell: int, worker: int, now: Kept) -> None:
        self.about["changes"] += 1
        row = {"cell": cell, "worker": worker, "changed": self.about["changes"], **now._asdict()}
        self._cells[cell] = row

    def _add_call(
        self,
        cell: int,
        most: float,
        attempt: int = 0,
        cost: float | None = None,
        error: str | None = None,
        *,
        begun: float,
    ) -> None:
        row = {"call": self.about["calls"], "cell": cell, "attempt": attempt, "worker": self.me}
        self._calls.append({**row, "most": most, "cost": cost, "error": error, "begun": begun})
        self.about["calls"] += 1

    def _settle(self, call: int, cost: float, error: str | None) -> None:
        """What a call cost."""
        self._settled[call] = {"which": call, "paid": cost, "why": error}

    def write(self) -> None:
        """All of it, at once, as the last of the turn."""
        if not self._copy.under_way:
            self.about["held"] = 0.0  # what rounding left
        changes = self._changes
        if self._calls:
            changes.append((CALL, self._calls))
        if self._begun:
            changes.append((BEGIN_CALL, list(self._begun.values())))
        if self._settled:
            changes.append((SETTLE, list(self._settled.values())))
        if self._cells:
            changes.append((UPSERT, list(self._cells.values())))
        if self.about != self._before:
            changes.append((KEEP, [{f"new_{name}": value for name, value in self.about.items()}]))
        self._db.conclude(self.connection, changes)
