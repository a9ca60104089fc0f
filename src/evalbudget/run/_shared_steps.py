"""The steps of a shared purchase, and what they are about."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from evalbudget.design import Cell, Reading, Request
from evalbudget.store import Step


class Kind(StrEnum):
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


def asked(worker: int, request: Request, cost: float, *, restricted: bool) -> Step:
    """A request was handed out."""
    body: dict[str, Any] = {"cell": list(request.cell)}
    for name in ("propensity", "phase"):
        if getattr(request, name) is not None:
            body[name] = getattr(request, name)
    body |= {"restricted": True} if restricted else {}
    return Step(worker, Kind.ASK, request.id, cost, body)


def told(worker: int, reading: Reading) -> Step:
    """A reading came back."""
    body: dict[str, Any] = {"value": reading.value}
    body |= {} if reading.error is None else {"error": reading.error}
    return Step(worker, Kind.TELL, reading.request.id, reading.cost, body)


def asked_request(step: Step) -> Request:
    """That an ask is about."""
    assert step.request is not None
    cell = Cell(*step.body["cell"])
    return Request(step.request, cell, step.body.get("propensity"), step.body.get("phase"))


def reading_of(step: Step, request: Request) -> Reading:
    """That a tell is about."""
    body = step.body
    return Reading(request, body["value"], step.cost, body.get("error"))
