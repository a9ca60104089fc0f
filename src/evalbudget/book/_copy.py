"""A process's own copy of a book: what is known of it, and what this turn writes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from evalbudget.book._known import Known, is_adopted
from evalbudget.book._notes import packed, unpacked
from evalbudget.book._statements import (
    ALL_WITHDRAWN,
    BEGIN_PASS,
    BEGIN_ROUND,
    CALL,
    CHANGED,
    FORGET_NOTE,
    HOW_IT_STANDS,
    KEEP,
    MISSED_PASSES,
    MISSED_ROUNDS,
    NUMBERS,
    SETTLE,
    UPSERT,
    WITHDRAW,
)
from evalbudget.book._tables import NO_CELL
from evalbudget.cells import CAME, TAKEN, Planned
from evalbudget.errors import StoreError
from evalbudget.sampler import Sampler
from evalbudget.statistics._bounds import IntArray
from evalbudget.store import Address
from evalbudget.store._sql import Asked, Change, Query, conclude

_COUNTS = ("rounds", "passes", "withdrawn", "calls", "changes")
_WHOLE = ("cell", "state", "tries", "lost", "call", "attempt", "passed")


def check_numbers(row: Any, *, whole: Sequence[str] = (), real: Sequence[str] = ()) -> None:
    """Refuse what is no number; SQLite keeps whatever somebody writes.

    Raises:
        ValueError: names it.
    """
    for name in (*whole, *real):
        value = getattr(row, name)
        if not isinstance(value, int if name in whole else int | float) or not math.isfinite(value):
            raise ValueError(f"{name} is {value!r}")


class Copy:
    """Columns and numbers of a book, read anew only as far as others changed them.

    Args:
        sampler: whose rounds they are.
        where: the book is, for messages.

    Attributes:
        known: its cells and rounds.
        about: what would have to be summed.
    """

    def __init__(self, sampler: Sampler, where: Address) -> None:
        self._sampler, self._where = sampler, where
        self.known = Known(sampler)
        self.about: dict[str, Any] = {**dict.fromkeys(NUMBERS, 0), "stopped": None}
        self._before = dict(self.about)
        self._changes: list[Change] = []  # to be made at the end of the turn
        self._cells: dict[int, dict[str, Any]] = {}  # rows to be written then
        self._calls: list[dict[str, Any]] = []
        self._settled: dict[int, dict[str, Any]] = {}

    def asks(self) -> Sequence[Query]:
        """What :meth:`look` will ask, as far as that is known before."""
        return Query(HOW_IT_STANDS), Query(CHANGED, {"after": self.about["changes"]})

    def look(self, asked: Asked) -> None:
        """Take in what others did.

        Raises:
            StoreError: what stands there cannot be.
        """
        rows = asked.rows
        about = next(iter(rows(HOW_IT_STANDS)), None)
        try:
            if about is None:
                raise ValueError("its numbers are gone")
            check_numbers(about, whole=_COUNTS, real=("cap", "spent", "held"))
            known = self.known
            if about.rounds > known.n_rounds:
                for row in rows(MISSED_ROUNDS, {"after": known.n_rounds}):
                    planned = Planned(*unpacked(row.planned, ()))
                    note = None if row.note is None else unpacked(row.note, self._sampler.note_kinds)
                    known.begin(planned if note is None else planned._replace(note=note))
                    if known.n_rounds == about.rounds and row.note is None and not is_adopted(planned):
                        raise ValueError("the note of its last round is gone")
            if about.passes > known.n_passes:
                for row in rows(MISSED_PASSES, {"after": known.n_passes}):
                    known.begin_pass(unpacked(row.cells, ()))
            if about.withdrawn > len(known.why_withdrawn):
                for row in rows(ALL_WITHDRAWN):
                    known.withdraw(row.model, row.asked, row.why)
            if about.changes > self.about["changes"]:
                self._take_in(rows(CHANGED, {"after": self.about["changes"]}))
            there = known.n_rounds, known.n_passes, len(known.why_withdrawn)
            if (about.rounds, about.passes, about.withdrawn) != there:
                raise ValueError("rounds or passes of it are gone")
        except (LookupError, TypeError, ValueError, AttributeError) as ex:
            raise self.damaged(ex) from ex
        self.about.update({name: getattr(about, name) for name in NUMBERS})
        self._before = dict(self.about)

    def damaged(self, why: object) -> StoreError:
        """What is raised where something stands there that cannot be."""
        return StoreError(f"{self._where} is damaged: {why}; restore a copy, or begin a new one")

    def _take_in(self, rows: Sequence[Any]) -> None:
        """Cells that others changed."""
        if not rows:
            return
        columns = dict(zip(rows[0]._fields, zip(*rows, strict=True), strict=True))
        are_whole = all(set(map(type, columns[name])) == {int} for name in _WHOLE)
        if not (are_whole and set(map(type, columns["cost"])) == {float}):
            for row in rows:
                check_numbers(row, whole=_WHOLE, real=("cost",))
        for row in rows:
            self._check(row)
        self.known.set_all(columns.pop("cell"), columns)

    def _check(self, row: Any) -> None:
        cell, state, tries, value = row.cell, row.state, row.tries, row.value
        fits = 0 <= cell < len(self.known) and state in range(4) and 0 <= row.lost <= tries
        if not fits or tries < (state in (TAKEN, CAME)) or row.attempt < 0 < tries:
            raise ValueError(f"cell {cell} is in state {state} after {tries} tries")
        if (state == CAME) != (value is not None and math.isfinite(value)) or not math.isfinite(row.cost):
            raise ValueError(f"cell {cell} is in state {state} with the score {value} for {row.cost}")

    # what this turn does

    def begin(self, planned: Planned, texts: Mapping[str, str | None]) -> None:
        """A round was planned; ``texts`` are what is kept of it."""
        self._changes.append((FORGET_NOTE, [{"before": self.about["rounds"] - 1}]))
        self._changes.append((BEGIN_ROUND, [{"round": self.about["rounds"], **texts}]))
        self.about["rounds"] += 1
        self.known.begin(planned)

    def texts_of(self, planned: Planned) -> dict[str, str | None]:
        """What is kept of a round, by column."""
        if is_adopted(planned):
            return {"planned": packed(tuple(planned), ()), "note": None}
        cells, note = planned._replace(note=None), packed(planned.note, self._sampler.note_kinds)
        return {"planned": packed(tuple(cells), ()), "note": note}

    def call(self, cell: int, worker: int, most: float, attempt: int | None = None) -> tuple[int, int]:
        """Hand a cell out; the number of the call, and which of its model's item it is: the next, if None."""
        if attempt is None:
            attempt = self.known.next_attempt(cell)
        tries = self.known.tried(cell).tries + 1
        self.about["held"] += most
        number = self._add_call(cell, worker, most, attempt=attempt, cost=None, error=None)
        self.change(cell, worker, state=TAKEN, call=number, attempt=attempt, tries=tries)
        return number, attempt

    def pay(self, worker: int, cost: float, why: str) -> None:
        """Something was paid that is of no cell."""
        self.about["spent"] += cost
        self._add_call(NO_CELL, worker, cost, attempt=0, cost=cost, error=why)

    def _add_call(self, cell: int, worker: int, most: float, **more: Any) -> int:
        number = int(self.about["calls"])
        self.about["calls"] += 1
        self._calls.append({"call": number, "cell": cell, "worker": worker, "most": most, **more})
        return number

    def settle(self, call: int, cost: float, error: str | None) -> None:
        """What a call cost."""
        self._settled[call] = {"which": call, "paid": cost, "why": error}

    def begin_pass(self, ask: IntArray) -> None:
        """Cells that are handed out next."""
        self._changes.append((BEGIN_PASS, [{"pass": self.about["passes"], "cells": packed(ask, ())}]))
        self.about["passes"] += 1
        self.known.begin_pass(ask)

    def withdraw(self, model: int, why: str) -> None:
        """A model is asked nothing more."""
        asked = self.known.cells().asked
        self._changes.append((WITHDRAW, [{"model": model, "asked": asked, "why": why}]))
        self.about["withdrawn"] += 1
        self.known.withdraw(model, asked, why)

    def change(self, cell: int, worker: int, **new: Any) -> None:
        """Change a cell, here and at the end of the turn in the book."""
        self.about["changes"] += 1
        row = self.known.change(cell, new)
        self._cells[cell] = {**row, "cell": cell, "worker": worker, "changed": self.about["changes"]}

    def write(self, connection: Connection) -> None:
        """All of it, at once, as the last of the turn."""
        if not self.known.under_way:
            self.about["held"] = 0.0  # what rounding left
        changes, self._changes = self._changes, []
        if self._calls:
            changes.append((CALL, self._calls))
        if self._settled:
            changes.append((SETTLE, list(self._settled.values())))
        if self._cells:
            changes.append((UPSERT, list(self._cells.values())))
        if self.about != self._before:
            changes.append((KEEP, [{f"new_{name}": value for name, value in self.about.items()}]))
        self._calls, self._settled, self._cells, self._before = [], {}, {}, dict(self.about)
        conclude(connection, changes)
