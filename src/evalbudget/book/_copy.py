"""A process's own copy of a book: what is known of it, and what this turn writes."""

from __future__ import annotations

import math
from typing import Any

from sqlalchemy import Connection, insert, select

from evalbudget.book._known import Known
from evalbudget.book._notes import packed, unpacked
from evalbudget.book._statements import CHANGED, KEEP, MISSED_ROUNDS, NUMBERS, SETTLE, UPSERT
from evalbudget.book._tables import ABOUT, CALLS, ROUNDS
from evalbudget.cells import CAME, CLOSED, TAKEN, Planned
from evalbudget.errors import StoreError
from evalbudget.sampler import Sampler
from evalbudget.store import Address


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
        self._cells: dict[int, dict[str, Any]] = {}  # rows to be written at the end of the turn
        self._calls: list[dict[str, Any]] = []
        self._settled: list[dict[str, Any]] = []

    def look(self, connection: Connection) -> None:
        """Take in what others did.

        Raises:
            StoreError: what stands there cannot be.
        """
        about = connection.execute(select(ABOUT)).one_or_none()
        try:
            if about is None:
                raise ValueError("its numbers are gone")
            if about.rounds > len(self.known.notes):
                for row in connection.execute(MISSED_ROUNDS, {"after": len(self.known.notes)}):
                    self.known.begin(Planned(*unpacked(row.planned, self._sampler.note_kinds)))
            if about.changes > self.about["changes"]:
                for row in connection.execute(CHANGED, {"after": self.about["changes"]}):
                    self._set(row.cell, row.state, row.value, row.tries, row.cost, row.call)
            if about.rounds != len(self.known.notes):
                raise ValueError(f"of {about.rounds} rounds {len(self.known.notes)} are there")
        except (LookupError, TypeError, ValueError, AttributeError) as ex:
            raise StoreError(f"{self._where} is damaged: {ex}; restore a copy, or begin a new one") from ex
        self.about = {name: getattr(about, name) for name in NUMBERS}
        self._before = dict(self.about)

    def _set(self, cell: int, state: int, value: float | None, tries: int, cost: float, call: int) -> None:
        if not (0 <= cell < len(self.known) and state in range(4) and tries >= (state != CLOSED)):
            raise ValueError(f"cell {cell} is in state {state} after {tries} tries")
        if (state == CAME) != (value is not None and math.isfinite(value)):
            raise ValueError(f"cell {cell} is in state {state} with the score {value}")
        self.known.set(cell, state, value, tries, cost, call)

    # what this turn does

    def begin(self, connection: Connection, planned: Planned, text: str) -> None:
        """A round was planned; ``text`` is what is kept of it."""
        connection.execute(insert(ROUNDS), {"round": self.about["rounds"], "planned": text})
        self.about["rounds"] += 1
        self.known.begin(planned)

    def text_of(self, planned: Planned) -> str:
        """What is kept of a round."""
        return packed(tuple(planned), self._sampler.note_kinds)

    def call(self, cell: int, worker: int, most: float) -> int:
        """Hand a cell out; the number of the call."""
        number = int(self.about["calls"])
        self.about["calls"] += 1
        self.about["held"] += most
        self._calls.append({"call": number, "cell": cell, "worker": worker, "most": most})
        self.change(cell, TAKEN, worker, number)
        return number

    def settle(self, call: int, cost: float, error: str | None) -> None:
        """What a call cost."""
        self._settled.append({"which": call, "paid": cost, "why": error})

    def change(
        self,
        cell: int,
        state: int,
        worker: int,
        call: int,
        *,
        value: float | None = None,
        paid: float = 0.0,
    ) -> None:
        """Change a cell, here and at the end of the turn in the book."""
        self.about["changes"] += 1
        tries = self.known.of("tries", cell) + (state == TAKEN)
        cost = self.known.of("cost", cell) + paid
        self.known.set(cell, state, value, tries, cost, call)
        self._cells[cell] = {
            "cell": cell,
            "state": state,
            "worker": worker,
            "call": call,
            "tries": tries,
            "value": value,
            "cost": cost,
            "changed": self.about["changes"],
        }

    def write(self, connection: Connection) -> None:
        """All of it, at once."""
        if self._calls:
            connection.execute(insert(CALLS), self._calls)
        if self._settled:
            connection.execute(SETTLE, self._settled)
        if self._cells:
            connection.execute(UPSERT[connection.dialect.name], list(self._cells.values()))
        if self.about != self._before:
            connection.execute(KEEP, {f"new_{name}": value for name, value in self.about.items()})
        self._calls, self._settled, self._cells = [], [], {}
