"""A small audit to label: two systems, both labelled on every third item."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evalbudget.audit_draws import AuditDraw, Coin
from evalbudget.audit_store import Answer, AuditDesign, AuditStore, Scale

TEN = Scale(1, 10, 1)


class Clock:
    """Seconds since 1970, moved by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


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
                coin=Coin.SHARED,
                leader=None,
                cap=float("inf"),
                policy=policy,
                wanted=wanted(item),
            )
            rows.append((draw, Answer(f"Write story {item}.", f"Story {item} by {model}.", f"Reason {item}")))
    return rows


def audit(
    path: Path, contexts: int = 9, clock: Callable[[], float] | None = None, **changes: object
) -> AuditStore:
    """A store whose draws 0, 1, 6, 7, 12, 13, ... are wanted."""
    store = AuditStore.create(
        path, design(**changes), command="evalbudget inspect eval t.py", clock=clock or Clock()
    )
    store.draws.append(drawn(range(contexts)))
    return store
