"""How a race goes, on standard error: a line whenever a twentieth of the budget is spent or an arm leaves."""

from __future__ import annotations

import click

from evalbudget.racing import Race

_LINES = 20


class Reporter:
    """Told the state of the race after each round."""

    def __init__(self) -> None:
        self._said: tuple[int, int] | None = None
        self._left: set[int] = set()
        self.so_far = ""

    def __call__(self, race: Race) -> None:
        """Say what changed."""
        spent, budget = int(race.ledger.spent), int(race.budget.amount)
        self.so_far = f" after {spent:,} evaluations"
        for arm, at in race.sampler.eliminated.items():
            if arm not in self._left:
                self._left.add(arm)
                lane = race.lanes[arm]
                why = lane.left or ("it kept failing" if arm in race.sampler.lost else "it cannot win")
                click.echo(f"race: {lane.name} left after {at:,} evaluations: {why}", err=True)
        mark = (spent * _LINES // max(1, min(budget, race.grid)), len(self._left))
        if mark != self._said:
            self._said = mark
            leader = race.lanes[race.sampler.leader()].name
            click.echo(f"race: {spent:,} of {min(budget, race.grid):,} evaluations; {leader} leads", err=True)
