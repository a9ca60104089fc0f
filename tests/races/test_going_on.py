"""A race that is killed, however often, goes on as if it had not been, and its replicas never part."""

from __future__ import annotations

import random
from typing import Any

import pytest
from tests.claims import variant

from evalbudget.comparisons import GateConfig
from evalbudget.races import KnownCell, RaceConfig, RacePurchase
from evalbudget.races._lanes import Asked

ITEMS = [f"i{k}" for k in range(24)]
ARMS = ["a", "b", "c"]


def a_race(config: RaceConfig, attempts: int, repeats: int) -> RacePurchase:
    arms = ARMS[:2] if isinstance(config, GateConfig) else ARMS
    return RacePurchase(
        config, arms, ITEMS, attempts=attempts, widths=[4, 7, 2][: len(arms)], repeats=repeats
    )


class Host:
    """Runs cells of one race after the other; what an answer is depends on the cell alone."""

    def __init__(self, seed: int, attempts: int, fails: float) -> None:
        self.rng = random.Random(seed)
        self.seed, self.attempts, self.fails = seed, attempts, fails
        self.known: dict[int, list[KnownCell]] = {0: [], 1: [], 2: []}

    def runs(self, race: RacePurchase, *, kills_at: int | None = None, looks: bool = False) -> None:
        """Until the race ends, or so many cells have."""
        flying: list[Asked] = race.wanted()
        ended = 0
        while flying and ended != kills_at:
            asked = flying.pop(self.rng.randrange(len(flying)))
            luck = random.Random(f"{self.seed} {asked}")
            value = None if luck.random() < self.fails else float(luck.random() < 0.4 + 0.2 * asked.arm)
            attempts = luck.randint(1, self.attempts)
            race.started(asked.arm, asked.key)
            race.completed(asked.arm, asked.key, value, attempts=attempts)
            self.known[asked.arm].append(KnownCell(asked.key, value, attempts))
            ended += 1
            if looks and self.rng.random() < 0.3:
                assert race.free >= -1e-9
                assert race.sampler.leader() in range(3)
            flying += race.wanted()

    @property
    def cells(self) -> dict[int, list[KnownCell]]:
        return {arm: sorted(own, key=lambda cell: cell.key) for arm, own in self.known.items()}


CONFIGS: dict[str, tuple[Any, int]] = {
    "race": (RaceConfig.of(budget=60, sampler="race", batch=4, seed=1), 1),
    "uniform": (RaceConfig.of(budget=71, sampler="uniform", seed=2), 1),
    "gate": (GateConfig.of(baseline="", baseline_model="a", margin=0.2, repeats=3, budget=150, seed=3), 3),
}


@pytest.mark.parametrize("seed", [0, *map(variant, range(1, 12))])
@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize("name", CONFIGS)
def test_killed_and_looked_at_it_buys_the_same(name: str, attempts: int, seed: int) -> None:
    config, repeats = CONFIGS[name]
    whole = a_race(config, attempts, repeats)
    undisturbed = Host(seed, attempts, fails=0.2)
    undisturbed.runs(whole)
    assert whole.finished
    assert whole.spent <= whole.budget.amount
    killed = Host(seed, attempts, fails=0.2)
    killed.rng = random.Random(f"another order {seed}")
    for _ in range(3):
        race = a_race(config, attempts, repeats)
        race.replay(killed.cells)
        killed.runs(race, kills_at=killed.rng.randrange(1, 25), looks=True)
    last = a_race(config, attempts, repeats)
    last.replay(killed.cells)
    killed.runs(last, looks=True)
    if attempts == 1:  # a kill cuts nothing off here, so that nothing but the order differs
        assert killed.cells == undisturbed.cells
        assert last.stop_reason == whole.stop_reason
        assert last.sampler.eliminated == whole.sampler.eliminated
    assert last.spent == sum(cell.attempts for own in killed.cells.values() for cell in own)
    assert last.spent <= last.budget.amount
    assert last.evaluations == last.spent
