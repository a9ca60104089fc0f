"""``--dry-run``: what the runs of a command would buy, and what would be refused, without any call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import yaml  # type: ignore[import-untyped]
from inspect_ai import Task
from inspect_ai.log import EvalLog, list_eval_logs, read_eval_log
from inspect_ai.model import ChatMessageUser, GenerateConfig

from evalbudget.budget import Budget, Unit, shown_amount
from evalbudget.errors import BudgetError
from evalbudget.prices import Tariff
from evalbudget.run import Forecast
from evalbudget_inspect.host.bill import counted, host_price
from evalbudget_inspect.host.call_bounds import input_at_most, output_at_most
from evalbudget_inspect.host.chosen_samples import strata_of_items
from evalbudget_inspect.host.models_asked import models_of_scorers
from evalbudget_inspect.host.questions import digests_to_be
from evalbudget_inspect.host.tasks import load_alone
from evalbudget_inspect.repeats.config import Config
from evalbudget_inspect.repeats.least_budget import FEWER, least_of
from evalbudget_inspect.repeats.sample_source import BudgetedSource
from evalbudget_inspect.repeats.shared_budget import arguments_in, samples_of
from evalbudget_inspect.repeats.task import budgeted

_MOST_LOGS = 50
"""Looked into, the newest first."""


def forecasts(
    ours: Mapping[str, Any],
    specs: Sequence[str],
    models: Sequence[str],
    parsed: Mapping[str, Any],
    parts: Mapping[str, int | str] | None,
) -> list[Forecast]:
    """One for each run; tasks are loaded and adapted, models are not.

    Args:
        ours: what the user asked for.
        specs: of the tasks.
        models: that every task runs with.
        parsed: what the host makes of the other arguments.
        parts: budgets of the runs of each task, by its spec, where they share one.

    Raises:
        EvalbudgetError: a run would be refused.
    """
    found = []
    for spec in specs:
        given = {**ours, **({} if parts is None else {"budget": parts[spec]})}
        for model in models:
            task = load_alone(spec, arguments_in(parsed), model)
            samples = samples_of(task, parsed)
            config = Config.of(**{"budget": None, **given})
            config.variances_of(digests_to_be(samples))  # what it refuses
            found.append(_forecast(config, task, model, len(samples), parsed))
            source = budgeted(task, **given).sample_source  # what it refuses of the task
            if isinstance(source, BudgetedSource):
                source.check_clusters(samples)
    return found


def _forecast(config: Config, task: Task, model: str, items: int, parsed: Mapping[str, Any]) -> Forecast:
    budget = None if config.budget is None else config.resolve_budget(items)
    config = config.for_items(items)
    epochs = parsed.get("epochs") or task.epochs or 1
    attempts = 1 + (parsed.get("retry_on_error") or 0)
    config.check_epochs(epochs)
    strata_of_items(list(task.dataset), config.strata)  # what it refuses
    sampler = config.outline(items, warmup=epochs)
    least, why = least_of(config, sampler, items, epochs, attempts)
    if budget is not None and config.in_scores:
        config.check_minimum(budget, least, why, FEWER, judged=config.rotates)
    tariff = config.tariff(host_price)
    call = None
    if budget is not None and not config.in_scores:
        judges = [] if config.panel is None else config.panel.model_names.values()
        tariff.check([model, *models_with_roles(parsed), *models_of_scorers(task.scorer or []), *judges])
        call = call_at_most(task, model, tariff, budget, parsed)
    earlier = earlier_runs(task.name, [model], tariff, str(parsed.get("log_dir") or "logs"))
    return Forecast(
        task=task.name,
        model=model,
        sampler=config.sampler,
        items=items,
        budget=budget,
        minimum=least,
        most=int(budget.amount) if budget is not None and config.in_scores else None,
        call=call,
        reading=None if earlier is None else earlier.cost,
        seconds=None if earlier is None else earlier.seconds,
        risk=config.risk,
        sample=config.draws,
        strata=config.strata if config.draws else None,
    )


def call_at_most(
    task: Task, model: str, tariff: Tariff, budget: Budget, parsed: Mapping[str, Any]
) -> float | None:
    """What the first call on the longest item costs at most; None where only its provider limits replies.

    Raises:
        BudgetError: the budget is below it.
    """
    price = tariff.price(model)
    config = GenerateConfig(max_tokens=parsed.get("max_tokens") or task.config.max_tokens)
    if config.max_tokens is None and (price is None or price.max_output is None):
        return None
    inputs = [
        [ChatMessageUser(content=sample.input)] if isinstance(sample.input, str) else sample.input
        for sample in task.dataset
    ]
    reply = output_at_most(model, config, price)
    most = max(tariff.most(model, input_at_most(model, messages, [], config), reply) for messages in inputs)
    if most > budget.amount:
        raise BudgetError(
            f"the budget of {budget} is below one call of {model}, which may cost "
            f"{shown_amount(most, budget.unit)}. Raise --budget to that or more, or limit replies "
            "(--max-tokens)"
        )
    return most


def models_with_roles(parsed: Mapping[str, Any]) -> Iterator[str]:
    """Models with a role."""
    for given in parsed.get("model_role") or ():
        value = yaml.safe_load(given.partition("=")[2])
        if isinstance(value, Mapping):
            value = value.get("model", "")
        yield from (part.strip() for part in str(value).split(",") if part.strip())


@dataclass(frozen=True, slots=True)
class Earlier:
    """What one sample took on average in earlier runs: in units of the budget, and in seconds."""

    cost: float | None
    seconds: float | None


def earlier_runs(task: str, models: Sequence[str], tariff: Tariff, folder: str) -> Earlier | None:
    """Of samples in logs of a task and these models; None where there are none.

    Args:
        task: its name.
        models: that were evaluated.
        tariff: what calls cost.
        folder: of the logs.
    """
    samples, cost, seconds = 0, 0.0, 0.0
    for log in _logs(folder):
        done = 0 if log.results is None else log.results.completed_samples
        if log.status != "success" or not done or log.eval.task != task or log.eval.model not in models:
            continue
        samples += done
        if tariff.unit is not Unit.SCORES:
            cost += sum(
                tariff.cost(name, counted(usage, 0.0))
                for name, usage in log.stats.model_usage.items()
                if tariff.unit is Unit.TOKENS or tariff.price(name) is not None
            )
        if log.stats.started_at and log.stats.completed_at:
            ends = [datetime.fromisoformat(at) for at in (log.stats.started_at, log.stats.completed_at)]
            seconds += (ends[1] - ends[0]).total_seconds()
    if not samples:
        return None
    return Earlier(cost / samples or None, seconds / samples or None)


def _logs(folder: str) -> Iterator[EvalLog]:
    try:
        infos = list_eval_logs(folder)[:_MOST_LOGS]
    except FileNotFoundError:
        return
    for info in infos:
        try:
            yield read_eval_log(info, header_only=True)
        except Exception:  # whatever a damaged file raises: it tells nothing
            continue
