"""Plays audits against simulated worlds: whole batches as arrays, and PP-LUCB pull by pull."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from audits_sections.worlds import World
from evalbudget.audits.policies import AuditConfig, LucbConfig
from evalbudget.audits.policies._eprocess_state import EProcess
from evalbudget.audits.policies._lucb import LucbState

PRICES = (1.0, 20.0)
Make = Callable[[int, float, np.random.Generator], World]


@dataclass(frozen=True)
class Played:
    """How an audit ended.

    Attributes:
        named: the system that leads or won.
        decided: whether a winner was declared, or a system that is within the margin of it.
        pulls: judge scores.
        audits: labels.
        of_pool: whether what was decided is about the pool, after a second pass, and not items like these.
        exact: whether labels alone decided it.
    """

    named: int
    decided: bool
    pulls: int
    audits: int
    of_pool: bool = False
    exact: bool = False

    def is_wrong_among_equals(self, world: World) -> bool:
        """Whether it names a winner where systems are equal: any at all, or not the best of this pool."""
        if not self.of_pool:
            return self.decided
        means = world.human.mean(axis=0)
        others = np.delete(means, self.named)
        return self.decided and bool(others.max() > means[self.named] - 1e-9)

    @property
    def cost(self) -> float:
        """At the prices 1 and 20."""
        return PRICES[0] * self.pulls + PRICES[1] * self.audits


def audit(world: World, *, seed: int, **options: Any) -> Played:
    """``audit-eprocess``; every batch is judged and labelled as a whole."""
    policy = _played(world, seed=seed, **options)
    left, second = np.flatnonzero(policy.active), policy.second
    decided = policy.near is not None or left.size == 1
    named = int(left[0]) if policy.near is None else policy.near
    exact = second is not None and decided and policy.near is None and bool(second.certain.all())
    return Played(named, decided, policy.judged, policy.labels, second is not None, exact)


def _played(world: World, *, seed: int, **options: Any) -> EProcess:
    n, systems = world.human.shape
    policy = EProcess(AuditConfig(systems, n, segments=world.segments, seed=seed, **options))
    while (f := policy.batch) is not None:
        cells = np.ix_(f.items, f.arms)
        drawn = policy.throw(world.judge[cells] if f.judged else np.full((f.items.size, f.arms.size), np.nan))
        known = policy.affordable(drawn)
        policy.learn(drawn, np.where(drawn.wanted, world.human[cells], np.nan)[:known])
    return policy


def single(world: World, *, seed: int, **options: Any) -> tuple[Played, float, float]:
    """As :func:`audit` for one system; whether its mean is known as well as wanted, and its interval."""
    policy = _played(world, seed=seed, **options)
    low, high = policy.interval(0)
    second = policy.second is not None
    return Played(0, policy.narrow, policy.judged, policy.labels, second), low, high


def lucb(
    make: Make,
    gap: float,
    *,
    seed: int,
    most: int | None = None,
    allocator: str = "uniform",
    **options: Any,
) -> Played:
    """PP-LUCB on an endless stream of items, until it stops or made ``most`` pulls."""
    rng = np.random.default_rng((seed, 77))
    truth = residuals(make, gap) if allocator == "oracle" else None
    systems = make(1, gap, rng).human.shape[1]
    settings = LucbConfig(
        *(systems, 1),
        judge_price=PRICES[0],
        label_price=PRICES[1],
        allocator=allocator,
        truth=truth,
        **options,
    )
    state = LucbState(settings)
    streams: list[Iterator[tuple[float, float, float]]] = [iter(())] * systems
    audits = 0
    while True:
        leader, challenger, parted = state.duel()
        if parted or (most is not None and state.pulls >= most):
            return Played(leader, parted, state.pulls, audits)
        for arm in (leader, challenger):
            pull = next(streams[arm], None)
            if pull is None:
                world = make(4096, gap, rng)
                columns = (
                    world.judge[:, arm].tolist(),
                    world.human[:, arm].tolist(),
                    rng.random(4096).tolist(),
                )
                streams[arm] = iter(zip(*columns, strict=True))
                pull = next(streams[arm])
            judge, human, u = pull
            pi = state.propensity(arm)
            asked = u < pi
            audits += asked
            state.learn(arm, judge, pi, human if asked else None)


@cache
def residuals(make: Make, gap: float) -> tuple[float, ...]:
    """E (Y - F)^2 of each system, from 200,000 items."""
    world = make(200_000, gap, np.random.default_rng(5))
    return tuple(((world.human - world.judge) ** 2).mean(axis=0).tolist())
