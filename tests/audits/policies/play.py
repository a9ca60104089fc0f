"""Plays a session against arrays, in draw order or shuffled."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalbudget.audits.policies import AuditConfig, AuditEProcess, HumanOnly

Floats = NDArray[np.float64]


def world(n: int = 400, systems: int = 3, gap: float = 0.3, seed: int = 0) -> tuple[Floats, Floats]:
    """Judge and human scores, shape (items, systems); system 0 is best."""
    rng = np.random.default_rng(seed)
    human = np.clip(0.7 - gap * np.arange(systems) + 0.2 * rng.standard_normal((n, systems)), 0.0, 1.0)
    return np.clip(human + 0.05 + 0.1 * rng.standard_normal(human.shape), 0.0, 1.0), human


def begin(config: AuditConfig) -> AuditEProcess:
    """The policy of these settings, before its first draw."""
    return (AuditEProcess if config.use_judge else HumanOnly)(config)


def play(
    config: AuditConfig,
    judge: Floats,
    human: Floats,
    *,
    shuffle: int | None = None,
    batches: int | None = None,
) -> AuditEProcess:
    """Until it is over, or for some batches."""
    session, rng = begin(config), random.Random(shuffle)
    while not session.over and (batches is None or session.process.batch.number < batches):  # type: ignore[union-attr]
        batch = session.process.batch
        contexts = list(session.contexts)
        if shuffle is not None:
            rng.shuffle(contexts)
        for context in contexts:
            if context.judged and session.process.batch is batch and not session.over:
                session.judge(context, judge[context.item, list(context.models)])
        drawn = {draw.index: draw for draw in session.draws}
        wanted = list(session.wanted) if session.process.batch is batch else []
        if shuffle is not None:
            rng.shuffle(wanted)
        for index in wanted:
            session.label(index, float(human[drawn[index].item, drawn[index].model]))
    return session


def labels_of(session: AuditEProcess, human: Floats) -> dict[int, float]:
    """What was answered."""
    return {d.index: float(human[d.item, d.model]) for d in session.draws if d.wanted}


def config(**options: Any) -> AuditConfig:
    """Three systems, 400 items, small batches."""
    return AuditConfig(**{"n_models": 3, "n_items": 400, "pilot": 20, "labels_per_batch": 15, **options})
