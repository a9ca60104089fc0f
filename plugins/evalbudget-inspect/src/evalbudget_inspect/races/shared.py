"""A race whose tasks run in several processes, as those of an eval set that is spread over workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalbudget.prices import Tariff
from evalbudget.races import Entry, RacePurchase
from evalbudget_inspect.races.arm import Arm, Group
from evalbudget_inspect.races.arm_names import name_of

if TYPE_CHECKING:
    from evalbudget.races import SharedBill

_WIDTH = 10
"""Samples of an arm at once, as inspect's connections, where nobody gave a number."""


def shared_race(
    group: Group, arms: Sequence[Arm], tariff: Tariff | None
) -> tuple[RacePurchase, SharedBill | None]:
    """Join the race with the arms of this process.

    Args:
        group: that the race is of.
        arms: that run here.
        tariff: what calls cost, where the budget is money or tokens.

    Returns:
        The race; and its bill, where the budget is money or tokens.

    Raises:
        StoreError: the store belongs to another race, or the race has gone on without an arm.
        StoreDownError: it cannot be reached.
        InvalidInputError: another process runs one of the arms.
    """
    config, items = group.config, list(arms[0].pool)
    attempts = 1 + (arms[0].run.spec.config.retry_on_error or 0)
    bill: SharedBill | None = None
    if tariff is not None:
        from evalbudget.races import SharedBill  # it brings SQLAlchemy, which no other race needs

        cap = config.resolve_budget(len(items), config.all_arms or len(arms))
        bill = SharedBill(cap, tariff, risk=config.risk)
    race = RacePurchase(
        config,
        [name_of(arm.identity) for arm in arms],
        items,
        attempts=attempts,
        widths=[arm.run.spec.config.max_samples or arm.run.config.max_connections or _WIDTH for arm in arms],
        cost_of=None if bill is None else bill.of_sample,
        bill=bill,
        about={"task": group.task, "task arguments": group.arguments, "score": group.series},
        defers=True,
    )
    models = dict.fromkeys(model for arm in arms for model in arm.models)
    race.join(
        [Entry(name_of(arm.identity), arm.known) for arm in arms],
        prices={} if tariff is None else tariff.told_of(models),
        bill=bill,
    )
    return race, bill
