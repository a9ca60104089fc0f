"""``eval-retry --dry-run``: what a run that goes on may still spend, without any call."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import click
from inspect_ai.log import EvalLog, EvalSpec, read_eval_log

from evalbudget.budget import Budget, shown_amount
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.run import spent_on
from evalbudget_inspect.host.bill_file import path_of_bill
from evalbudget_inspect.host.book_file import folder_of, spent_by
from evalbudget_inspect.repeats.config import Config
from evalbudget_inspect.repeats.dry_run import forecasts
from evalbudget_inspect.repeats.registry_entry import split_arguments, take_spec

SWITCH = "--dry-run"
_ENTRY = "evalbudget_inspect/budgeted"
_OURS = ("task", "budget", "sampler")


def foresee_retry(command: click.Command, args: Sequence[str]) -> str:
    """What the runs of these logs would still buy.

    Args:
        command: the host's ``eval-retry``.
        args: what the user typed after it, without the switch.

    Raises:
        InvalidInputError: there is no such log, or it is of no run that ``evalbudget inspect eval`` began.
        EvalbudgetError: the run would be refused.
    """
    context = command.make_context(command.name, list(args), resilient_parsing=True)
    found = [_foreseen(location) for location in context.params.get("log_files") or ()]
    if not found:
        raise InvalidInputError("which run goes on? Name its log: eval-retry LOG --dry-run")
    return "\n\n".join([*found, "No call was made."])


def _foreseen(location: str) -> str:
    try:
        log = read_eval_log(location, header_only=True)
    except FileNotFoundError as ex:
        raise InvalidInputError(
            f"there is no log {location}; inspect list logs shows those there are"
        ) from ex
    spec = log.eval
    if spec.task_registry_name != _ENTRY:
        raise InvalidInputError(
            f"{location} is of no run that evalbudget inspect eval began, and what its task does is not "
            "known before it runs; drop --dry-run"
        )
    ours, inner = split_arguments(dict(spec.task_args), _OURS)
    task = take_spec(ours)
    (forecast,) = forecasts(ours, [task], [spec.model], _as_typed(spec, inner, location), None)
    return f"{forecast}\nSo far{' ' * 5}{_so_far(log, location, Config.of(**{'budget': None, **ours}))}"


def _so_far(log: EvalLog, location: str, config: Config) -> str:
    task_id, folders = log.eval.task_id, [folder_of(location)]
    if config.in_scores:
        paid = spent_by(folders, task_id)
        if paid is None:
            return "what the log says, since its book is not beside it; it is not bought again"
        return f"{paid:g} scores spent, by its book; they are not bought again"
    path = path_of_bill(folders, task_id)
    if not path.exists():
        raise BudgetError(
            f"the bill of what this run paid is not beside its log ({path}). Put it back, or begin anew"
        )
    cap = Budget.parse(config.budget or "")
    spent = math.fsum(spent_on(path)[1].values())
    left = max(0.0, cap.amount - spent)
    return f"{shown_amount(spent, cap.unit)} spent, by its bill; {shown_amount(left, cap.unit)} left"


def _as_typed(spec: EvalSpec, inner: dict[str, Any], location: str) -> dict[str, Any]:
    """What the first command said, as far as a dry run asks for it."""
    config = spec.config
    return {
        "t": tuple(f"{name}={json.dumps(value)}" for name, value in inner.items()),
        "epochs": config.epochs,
        "retry_on_error": config.retry_on_error,
        "max_tokens": spec.model_generate_config.max_tokens,
        "log_dir": folder_of(location),
        "model_role": tuple(
            f"{role}={json.dumps(','.join(one.model for one in _listed(given)))}"
            for role, given in (spec.model_roles or {}).items()
        ),
        "limit": _limit(config.limit),
        "sample_id": None if config.sample_id is None else ",".join(map(str, _listed(config.sample_id))),
    }


def _limit(given: int | tuple[int, int] | None) -> str | None:
    if isinstance(given, tuple):  # the host counts from 0 here, and from 1 on its command line
        return f"{given[0] + 1}-{given[1]}"
    return None if given is None else str(given)


def _listed(given: Any) -> list[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]
