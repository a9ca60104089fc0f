"""What goes wrong between a client and the server, drawn at random."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

from loopback import DROPPED, GARBLED, Fault

TIMEOUT = 4.0
"""Seconds that clients wait for a reply: so long that a busy machine does not look like a silent server."""

KINDS = (
    Fault("429", 429, retry_after=1),
    Fault("500", 500),
    Fault("timeout", 200, delay=TIMEOUT + 1.0),  # the answer is computed, and paid; nobody waits for it
    Fault("dropped", DROPPED),
    Fault("cut", None),
    Fault("malformed", GARBLED),
    Fault("unparsable", 200, text="I would rather not say"),
)


def mixture(rng: random.Random, kinds: tuple[Fault, ...] = KINDS) -> dict[Fault, float]:
    """One to three kinds of faults, each with the share of requests that it hits."""
    chosen = rng.sample(kinds, min(len(kinds), rng.randint(1, 3)))
    return {kind: rng.uniform(0.02, 0.06) for kind in chosen}


def disturbing(shares: dict[Fault, float], seed: str) -> Callable[[dict[str, Any]], Fault | None]:
    """Decides about each request as it comes."""
    rng, lock = random.Random(seed), threading.Lock()

    def disturb(body: dict[str, Any]) -> Fault | None:
        with lock:
            at = rng.random()
        for kind, share in shares.items():
            at -= share
            if at < 0.0:
                return kind
        return None

    return disturb
