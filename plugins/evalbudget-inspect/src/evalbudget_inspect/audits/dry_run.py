"""``--dry-run`` of an audit: its next batch, and what would be refused, without any call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalbudget.audits.store import AuditBudget, AuditForecast, AuditSettings
from evalbudget.budget import Unit
from evalbudget.prices import Tariff
from evalbudget_inspect.audits.registry_entry import prepared
from evalbudget_inspect.host.bill import host_price
from evalbudget_inspect.host.private import parse_cli_args
from evalbudget_inspect.host.tasks import load_alone
from evalbudget_inspect.repeats.dry_run import call_at_most, earlier_runs


def foreseen(
    settings: AuditSettings,
    budget: AuditBudget | None,
    spec: str,
    args: dict[str, Any],
    parsed: Mapping[str, Any],
) -> AuditForecast:
    """What the audit would ask next; the task is loaded and adapted, models are not.

    Args:
        settings: of the audit.
        budget: on calls; None where they cost what they cost.
        spec: of the task.
        args: the task's own.
        parsed: what the host makes of the other arguments.

    Raises:
        EvalbudgetError: the audit would be refused.
    """
    task = load_alone(spec, args, settings.models[0])
    found = prepared(task, settings, parse_cli_args(parsed.get("model_role") or (), force_str=False))
    forecast = AuditForecast.of(task.name, found.design, settings, budget)
    tariff, call = Tariff(Unit.SCORES), None
    if budget is not None:
        tariff = budget.tariff(host_price)
        tariff.check(dict.fromkeys([*settings.models, *found.models]))
        calls = [call_at_most(task, model, tariff, budget.cap, parsed) for model in settings.models]
        call = None if None in calls else max(most for most in calls if most is not None)
    earlier = earlier_runs(task.name, settings.models, tariff, str(parsed.get("log_dir") or "logs"))
    if earlier is None:
        return forecast.knowing(call=call, reading=None, seconds=None)
    return forecast.knowing(call=call, reading=earlier.cost, seconds=earlier.seconds)
