"""``--dry-run`` of a race: what it would buy, and what would be refused, without any call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalbudget.hosts import forecast_of_race
from evalbudget.races import RaceConfig
from evalbudget.run import Forecast
from evalbudget_inspect.host.bill import host_price
from evalbudget_inspect.host.models_asked import models_of_scorers
from evalbudget_inspect.host.tasks import load_alone
from evalbudget_inspect.races.arm_names import names_of_arms
from evalbudget_inspect.races.registry_entry import parse_arm
from evalbudget_inspect.races.task import name_of_arm, one_arm
from evalbudget_inspect.repeats.dry_run import call_at_most, models_with_roles
from evalbudget_inspect.repeats.shared_budget import arguments_in, items_of


def foreseen(
    config: RaceConfig, spec: str, arms: Sequence[str], models: Sequence[str], parsed: Mapping[str, Any]
) -> Forecast:
    """What the race of one task would buy; the task is loaded and adapted, models are not.

    Args:
        config: what the user asked for.
        spec: of the task.
        arms: settings that race each other, as they were typed.
        models: that race.
        parsed: what the host makes of the other arguments.

    Raises:
        EvalbudgetError: the race would be refused.
    """
    settings = [parse_arm(arm) for arm in arms] or [("", {})]
    pairs = sorted((label, model) for label, _ in settings for model in models)
    names = names_of_arms(pairs)
    tasks = {
        (label, model): load_alone(spec, arguments_in(parsed) | dict(settings)[label], model)
        for label, model in pairs
    }
    task = next(iter(tasks.values())).name
    items = [str(number) for number in range(min(items_of(each, parsed) for each in tasks.values()))]
    call = None
    if not config.in_scores:
        budget, tariff = config.resolve_budget(len(items), len(names)), config.tariff(host_price)
        judges = [name for each in tasks.values() for name in models_of_scorers(each.scorer or [])]
        tariff.check(list(dict.fromkeys([*models, *models_with_roles(parsed), *judges])))
        calls = [call_at_most(each, model, tariff, budget, parsed) for (_, model), each in tasks.items()]
        call = None if None in calls else max(most for most in calls if most is not None)
    attempts = 1 + (parsed.get("retry_on_error") or 0)
    found = forecast_of_race(config, task, names, items, asked=len(names), attempts=attempts, call=call)
    labels = {name_of_arm(task, label): label for label, _ in settings} if arms else None
    for (label, _), each in tasks.items():
        one_arm(each, config, base=task, label=label, labels=labels)  # what it refuses of the task
    return found
