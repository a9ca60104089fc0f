"""A race whose tasks run in several processes, as those of an eval set that is spread over workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalbudget.prices import Tariff
from evalbudget_inspect.races.arm import Arm, Group
from evalbudget_inspect.races.arm_names import name_of

if TYPE_CHECKING:
    from evalbudget.races import SharedRace

_WIDTH = 10
"""Samples of an arm at once, as inspect's connections, where nobody gave a number."""


def shared_race(group: Group, arms: Sequence[Arm], tariff: Tariff | None) -> SharedRace:
    """Join the race with the arms of this process.

    Args:
        group: that the race is of.
        arms: that run here.
        tariff: what calls cost, where the budget is money or tokens.

    Raises:
        StoreError: the store belongs to another race, or the race has gone on without an arm.
        StoreDownError: it cannot be reached.
        InvalidInputError: another process runs one of the arms.
    """
    # they bring SQLAlchemy, which no other race needs
    from evalbudget.races import Entry, SharedRace

    attempts = 1 + (arms[0].run.spec.config.retry_on_error or 0)
    entries = [
        Entry(
            name_of(arm.identity),
            arm.run.spec.config.max_samples or arm.run.config.max_connections or _WIDTH,
            arm.known,
            arm.unread.samples * attempts + arm.unread.more,
        )
        for arm in arms
    ]
    about = {"task": group.task, "task arguments": group.arguments, "score": group.series}
    names = [entry.arm for entry in entries]
    race = SharedRace(
        group.config,
        list(arms[0].pool),
        names,
        about=about,
        attempts=attempts,
        tariff=tariff,
        models=dict.fromkeys(model for arm in arms for model in arm.models),
        weighs_room=True,
        defers=True,
    )
    race.join(entries)
    return race
