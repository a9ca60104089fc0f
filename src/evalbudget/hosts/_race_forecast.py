"""What a race would buy, before anybody is asked."""

from __future__ import annotations

from collections.abc import Sequence

from evalbudget.design import Design
from evalbudget.errors import InvalidInputError
from evalbudget.races import RaceConfig, RacePurchase
from evalbudget.run import Forecast


def forecast_of_race(
    config: RaceConfig,
    task: str,
    names: Sequence[str],
    items: Sequence[str],
    *,
    asked: int,
    attempts: int = 1,
    repeats: int = 1,
    call: float | None = None,
) -> Forecast:
    """What a race, or a gate, would buy.

    Args:
        config: what the user asked for.
        task: its name.
        names: of all arms.
        items: that they are compared on.
        asked: how many of the arms are asked; others have their scores.
        attempts: how often the host asks a cell at most, which all cost.
        repeats: answers of each item.
        call: what one call costs at most, in units of the budget; None where that is not known.

    Raises:
        EvalbudgetError: the budget does not suffice, or other processes have some of the arms.
    """
    if config.store is not None:
        raise InvalidInputError("a forecast knows the arms of this process only; drop --store, and name all")
    grid = len(items) * repeats * asked
    if config.in_scores:
        race = RacePurchase(config, names, items, attempts=attempts, repeats=repeats)
        budget, sampler, most = race.budget, race.sampler, min(race.most_evaluations, grid)
    else:
        budget, most = config.resolve_budget(len(items), len(names)), grid
        sampler = config.make_sampler(Design(items=tuple(items), models=tuple(names)))
    return Forecast(
        task=task,
        model=", ".join(names),
        sampler=config.sampler,
        items=len(items),
        budget=None if config.budget is None else budget,
        minimum=sampler.minimum_readings,
        most=most,
        call=call,
        risk=config.risk,
    )
