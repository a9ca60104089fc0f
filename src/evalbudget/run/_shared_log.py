"""What the workers of a shared purchase did, one step after the other: the tables, and steps as rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Row,
    Table,
    Text,
)

from evalbudget.design import Cell, Reading, Request
from evalbudget.errors import Choice
from evalbudget.store import Layout


class Kind(Choice):
    """What a step is."""

    ASK = "ask"
    """A request was handed to the worker, and its highest cost promised."""
    TELL = "tell"
    """Its reading came back."""
    LOSE = "lose"
    """The worker that had it gave no sign of life: its promise counts as spent; another one may take it."""
    TAKE = "take"
    """The worker has a request that waited."""
    WITHDRAW = "withdraw"
    """It was not sent after all, and waits."""
    PAY = "pay"
    """A call was paid that brought nothing that is read."""
    DECIDE = "decide"
    """The sampler was asked and stopped instead."""
    STOP = "stop"
    """Nothing more is asked."""


_TABLES = MetaData()

META = Table("meta", _TABLES, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

WORKERS = Table(
    "workers",
    _TABLES,
    Column("worker", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("until", Float, nullable=False),
)

STEPS = Table(
    "steps",
    _TABLES,
    Column("step", Integer, CheckConstraint("step >= 0"), primary_key=True, autoincrement=False),
    Column("worker", Integer, ForeignKey(WORKERS.c.worker), nullable=False),
    Column("kind", Text, nullable=False),
    Column("request", Integer),
    Column("cost", Float, nullable=False),
    Column("body", Text, nullable=False),
    CheckConstraint("kind IN ({})".format(", ".join(f"'{kind}'" for kind in Kind)), name="known_kind"),
    CheckConstraint("request IS NOT NULL OR kind IN ('pay', 'decide', 'stop')", name="of_a_request"),
)
for _kind in (Kind.ASK, Kind.TELL):
    _only = STEPS.c.kind == _kind.value
    Index(f"one_{_kind}", STEPS.c.request, unique=True, postgresql_where=_only, sqlite_where=_only)

LAYOUT = Layout("shared run", _TABLES, 1, 0x65766273, grows_only=("meta", "steps"))


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a worker did.

    Attributes:
        worker: its number.
        kind: of step.
        request: number of the request; None where it is about none.
        cost: that was promised (ask, take), paid (tell, pay) or lost (lose).
        body: what else there is to say; JSON values.
    """

    worker: int
    kind: Kind
    request: int | None = None
    cost: float = 0.0
    body: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def asked(cls, worker: int, request: Request, cost: float, *, adopted: bool, restricted: bool) -> Step:
        """A request was handed out."""
        body: dict[str, Any] = {"cell": list(request.cell)}
        for name in ("propensity", "weight"):
            if getattr(request, name) is not None:
                body[name] = getattr(request, name)
        body |= {"adopted": True} if adopted else {}
        body |= {"restricted": True} if restricted else {}
        return cls(worker, Kind.ASK, request.id, cost, body)

    @classmethod
    def told(cls, worker: int, reading: Reading) -> Step:
        """A reading came back."""
        body: dict[str, Any] = {"value": reading.value}
        body |= {} if reading.error is None else {"error": reading.error}
        body |= {"beside": list(reading.beside)} if reading.beside else {}
        return cls(worker, Kind.TELL, reading.request.id, reading.cost, body)

    @classmethod
    def of_row(cls, row: Row[Any]) -> Step:
        """As it stands in the store."""
        return cls(row.worker, Kind(row.kind), row.request, row.cost, json.loads(row.body))

    def as_row(self, number: int) -> dict[str, Any]:
        """As it stands in the store."""
        return {
            "step": number,
            "worker": self.worker,
            "kind": self.kind.value,
            "request": self.request,
            "cost": float(self.cost),
            "body": json.dumps(self.body, default=_plain, allow_nan=False),
        }

    def asked_request(self) -> Request:
        """That an ask is about."""
        assert self.request is not None
        cell = Cell(*self.body["cell"])
        return Request(self.request, cell, self.body.get("propensity"), self.body.get("weight"))

    def reading_of(self, request: Request) -> Reading:
        """That a tell is about."""
        body = self.body
        return Reading(request, body["value"], self.cost, body.get("error"), tuple(body.get("beside", ())))


def _plain(value: Any) -> Any:
    return value.item()  # NumPy's scalars
