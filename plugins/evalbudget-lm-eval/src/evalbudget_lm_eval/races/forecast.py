"""``--dry_run`` of a race: what is known of it before a model is loaded."""

from __future__ import annotations

from collections.abc import Sequence

from evalbudget import Design
from evalbudget.races import RaceConfig, RacePurchase
from evalbudget.run import Forecast
from evalbudget_lm_eval.arms.arm import Arm
from evalbudget_lm_eval.arms.compared import Compared
from evalbudget_lm_eval.arms.paid_arms import check_prices
from evalbudget_lm_eval.judges.filter import check_judges
from evalbudget_lm_eval.repeats.refusals import check_answers_vary


def foreseen(
    config: RaceConfig,
    arms: Sequence[Arm],
    compared: Compared,
    items: Sequence[str],
    beside: Sequence[str] = (),
    repeats: int = 1,
) -> Forecast:
    """What a race would buy; models are loaded when they are first asked, so a call's price is not known.

    Args:
        config: what the user asked for.
        arms: that run.
        compared: on what.
        items: documents, by their names in the race.
        beside: names of arms that come first and do not run.
        repeats: answers of each document.

    Raises:
        EvalbudgetError: what the race would refuse before it loads a model.
    """
    names = [*beside, *(arm.name for arm in arms)]
    for task in compared.tasks.values():
        check_judges(task)
    if repeats > 1:
        check_answers_vary(compared.tasks)
    if config.in_scores:
        race = RacePurchase(config, names, items, repeats=repeats)
        budget, most = race.budget, min(int(race.budget.amount), len(items) * len(arms) * repeats)
        minimum = race.sampler.minimum_readings
    else:
        budget = config.resolve_budget(1, 1)
        check_prices(config.tariff(), arms, list(compared.tasks.values()))
        minimum = config.make_sampler(Design(items=tuple(items), models=tuple(names))).minimum_readings
        most = len(items) * len(arms)
    return Forecast(
        task=compared.name,
        model=", ".join(names),
        sampler=config.sampler,
        items=len(items),
        budget=None if config.budget is None else budget,
        minimum=minimum,
        most=most,
        risk=config.risk,
    )
