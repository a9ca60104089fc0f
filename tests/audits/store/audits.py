"""Audits to label: a real one, and one whose draws are known without running anything."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from evalbudget.audits._draw import AuditDraw, Coin
from evalbudget.audits.policies import AuditEProcess, AuditPolicy
from evalbudget.audits.store import Answer, AuditDesign, AuditStore, Scale
from evalbudget.audits.store._run import AuditRun
from evalbudget.store import Address

TEN = Scale(1, 10, 1)
COMMAND = "evalbudget inspect eval t.py"


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


class RefusedError(Exception):
    """By the database itself."""


def by_hand(address: Address, *statements: str) -> None:
    """As somebody who does not use our code writes into a store."""
    if address.path is not None:
        errors: type[Exception] = sqlite3.Error
        connection: Any = sqlite3.connect(address.path)
    else:
        import psycopg

        errors = psycopg.Error
        query = address.url.query if address.url is not None else {}
        host, path = str(query["host"]), f"-c search_path={address.name}"
        connection = psycopg.connect(host=host, user="evalbudget", dbname="postgres", options=path)
    with closing(connection):
        for statement in statements:
            try:
                connection.execute(statement)
            except errors as ex:
                raise RefusedError(str(ex)) from ex
        connection.commit()


def design(**changes: object) -> AuditDesign:
    options: dict[str, object] = {
        "models": ("alpha", "beta"),
        "items": tuple(f"story {i}" for i in range(30)),
        "scale": TEN,
        "config": {"delta": 0.05, "seed": 3},
    }
    return AuditDesign(**options | changes)  # type: ignore[arg-type]


def drawn(
    items: range,
    *,
    start: int = 0,
    policy: int = 0,
    wanted: Callable[[int], bool] = lambda item: item % 3 == 0,
) -> list[tuple[AuditDraw, Answer]]:
    """Draws of both systems on each item; all on every third are wanted."""
    rows = []
    for item in items:
        for model in (0, 1):
            draw = AuditDraw(
                index=start + len(rows),
                context=item,
                model=model,
                item=item,
                segment=0,
                judge=(item % 10) / 9,
                prediction=0.5,
                propensity=1 / 3,
                uniform=0.1 if wanted(item) else 0.9,
                coin=Coin.DISJOINT,
                leader=None,
                cap=float("inf"),
                policy=policy,
                wanted=wanted(item),
            )
            rows.append((draw, Answer(f"Write story {item}.", f"Story {item} by {model}.", f"Reason {item}")))
    return rows


def audit(
    path: Path | Address, contexts: int = 9, clock: Callable[[], float] | None = None, **changes: object
) -> AuditStore:
    """A store whose draws 0, 1, 6, 7, 12, 13 are wanted; its verdict cannot be replayed."""
    store = AuditStore.create(path, design(**changes), command=COMMAND, clock=clock or Clock())
    store.draws.append(drawn(range(contexts)))
    return store


class Told:
    """A whole audit of systems whose answers have known scores: human 1 to 10, judge off by up to two."""

    def __init__(
        self,
        means: tuple[float, ...] = (7.0, 4.0),
        n_items: int = 200,
        policy: type[AuditPolicy] = AuditEProcess,
        **options: object,
    ) -> None:
        rng = np.random.default_rng(1)
        self.human = np.clip(np.round(rng.normal(means, 1.5, (n_items, len(means)))), 1, 10)
        self.judge = np.clip(self.human + rng.integers(-2, 3, self.human.shape), 1, 10)
        self.policy = policy.of({"n_models": len(means), "n_items": n_items, **options})
        names = ("alpha", "beta", "gamma")[: len(means)]
        self.design = AuditDesign.of(self.policy, names, [f"story {i}" for i in range(n_items)], TEN)

    def create(self, path: Path | Address, clock: Callable[[], float] | None = None) -> AuditStore:
        return AuditStore.create(path, self.design, command=COMMAND, clock=clock or Clock())

    def draw(self, store: AuditStore) -> AuditRun:
        """Judge the batch under way, as the run would."""
        run = AuditRun(store)
        for context in run.contexts:
            item, models = context.item, list(context.models)
            answers = [
                Answer(f"Write story {item}.", f"Story {item}, {m}.", f"Reason {item}") for m in models
            ]
            run.record(context, answers, self.judge[item, models].tolist() if context.judged else None)
        return run

    def score(self, store: AuditStore, draw: int) -> float:
        """What a human says of a draw."""
        found = next(d for d in store.draws.all() if d.index == draw)
        return float(self.human[found.item, found.model])
