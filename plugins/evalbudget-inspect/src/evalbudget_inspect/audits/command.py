"""Goes on with an audit: batch after batch until labels are wanted."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import click
from inspect_ai import Task

from evalbudget.audits.flags import FLAGS
from evalbudget.audits.store import (
    AuditBudget,
    AuditForecast,
    AuditRun,
    AuditSettings,
    AuditStore,
    Standing,
    check_money,
    only_run,
    used_up,
    weigh,
)
from evalbudget.budget import Unit
from evalbudget.cli import say
from evalbudget.errors import InvalidInputError
from evalbudget.flags import SAMPLER_OPTION, names_of
from evalbudget.prices import Tariff
from evalbudget.secrets import shown
from evalbudget_inspect.audits import registry_entry
from evalbudget_inspect.audits.answers import Found, keep_all, read_answers, require_bounds
from evalbudget_inspect.audits.labels_by_scorer import label_by_scorer
from evalbudget_inspect.audits.money import AuditMoney
from evalbudget_inspect.host.bill import host_price
from evalbudget_inspect.host.private import host_cli as host
from evalbudget_inspect.host.private import parse_cli_args, parse_cli_config
from evalbudget_inspect.host.rewrite import host_arguments, parse
from evalbudget_inspect.host.run_host import run_ours
from evalbudget_inspect.host.tasks import load_alone, named_tasks
from evalbudget_inspect.repeats.dry_run import call_at_most, earlier_runs
from evalbudget_inspect.repeats.flags import FLAGS as REPEATS

ENTRY = "evalbudget_inspect/audited"
_REFUSED = {
    "limit": "an audit draws its items by itself; for the first N items: --sampler-option items=N",
    "sample_id": "an audit draws its items by itself; drop it",
    "epochs": "an audit asks each model for each item once; drop it",
    "detach": "an audit waits for inspect and reads its logs; put the whole command into the background",
    "no_log_samples": "an audit reads the answers from inspect's logs; drop it",
}


def run_audit(
    args: Sequence[str],
    store: str,
    ours: Mapping[str, Any],
    again: Sequence[str],
    *,
    dry_run: bool = False,
) -> int:
    """Go on with an audit: answer and judge what it wants now, then say who has to do what.

    Args:
        args: what the user typed after the command, without our flags and the store.
        store: path or address of the audit.
        ours: our other arguments, those that were given.
        again: the command as typed, to show to people.
        dry_run: only say what would be asked.

    Returns:
        0 with a verdict, 1 without one, 3 if labels are wanted; the host's own if it failed.
    """
    parsed = parse(host.commands["eval"], args)
    for name, why in _REFUSED.items():
        if parsed.get(name):
            raise InvalidInputError(f"--{name.replace('_', '-')}: {why}")
    models = [model.strip() for model in str(parsed.get("model") or "").split(",") if model.strip()]
    if not models:
        raise InvalidInputError("which models? Name those to compare: --model a,b")
    folder = str(parsed.get("log_dir") or "./logs")
    given = dict(ours)
    AuditSettings.check_options(given)
    budget = AuditBudget.taken_from(given)
    settings = AuditSettings.of(store=store, models=models, **given)
    check_money(settings, budget)
    if dry_run:
        say(f"{_foreseen(settings, budget, parsed)}\n\nNo call was made.")
        return 0
    given["store"] = str(settings.store.resolved)
    if parsed.get("log_buffer") is None and "://" not in folder:
        args = [*args, "--log-buffer", "1"]  # what is answered is in the log before a kill can lose it
    money = None if budget is None else AuditMoney(budget, settings.store)
    with only_run(settings.store):
        return _go_on(settings, folder, args, given, shown(again), money)


def run_audit_beside_logs(
    name: str, args: Sequence[str], ours: Mapping[str, Any], *, dry_run: bool = False
) -> int:
    """As :func:`run_audit`, with the store ``audit.sqlite`` in the folder of the logs.

    Raises:
        InvalidInputError: it cannot be there, or something is asked for that audits do not have.
    """
    if name != "eval":
        raise InvalidInputError(f"an audit works with inspect eval; {name} has retries of its own")
    known = names_of(FLAGS)
    for each in names_of(REPEATS):
        if each in ours and each not in known:
            raise InvalidInputError(f"--{each.replace('_', '-')} has no meaning in an audit; drop it")
    AuditBudget.taken_from(dict(ours), "--sampler-option max_labels=N")
    folder = str(parse(host.commands["eval"], args).get("log_dir") or "./logs")
    if "://" in folder:
        raise InvalidInputError(
            f"--sampler {ours['sampler']} would keep the audit's store in {folder}, and a store is a local "
            "file or PostgreSQL; use evalbudget inspect audit STORE"
        )
    if not dry_run:
        Path(folder).mkdir(parents=True, exist_ok=True)
    store = str(Path(folder) / "audit.sqlite")
    spelled = {flag.name: flag.option for flag in REPEATS}
    again = ["evalbudget", "inspect", "eval"]
    for each, value in ours.items():
        again += (
            [spelled[each], str(value)] if each in spelled else [SAMPLER_OPTION.option, f"{each}={value}"]
        )
    return run_audit(args, store, ours, [*again, *args], dry_run=dry_run)


def _go_on(
    settings: AuditSettings,
    folder: str,
    args: Sequence[str],
    given: Mapping[str, Any],
    again: str,
    money: AuditMoney | None,
) -> int:
    """Batch after batch until somebody else has to do something."""
    command = host.commands["eval"]
    before: object = None
    if AuditStore.exists(settings.store):
        _check_judge(settings, parse(command, args))
    while True:
        missing = _missing(settings, folder, again, money)
        if isinstance(missing, Standing) and missing.wanted and settings.labels_from is not None:
            why_not = _label(settings, folder, parse(command, args), money)
            if not why_not:
                continue
            say(why_not)
        if isinstance(missing, Standing):
            say(missing.told(settings.store))
            if money is not None and money.text:
                say(money.text)
            return missing.stage.exit_code
        if money is not None and money.short:
            with AuditStore.open(settings.store) as store:
                told, ended = used_up(weigh(store), settings.store, money.budget.cap, len(missing.lacking))
            say(f"{told}\n{money.text}")
            return ended
        if missing == before:
            raise InvalidInputError(
                f"inspect has answered nothing of what the audit wants; see its logs in {folder}, then run "
                "the same command again"
            )
        before = missing
        registry_entry.plan = missing.plan
        try:
            with nullcontext() if money is None else money.opened():
                code = _run(command, args, given, missing.models, settings.models)
        finally:
            registry_entry.plan = registry_entry.Plan()  # it is of this run alone
        if code:
            _missing(settings, folder, again, money)  # what was answered is recorded all the same
            return code


@dataclass(frozen=True)
class _Missing:
    """What models still have to answer, and what the run of them has to know.

    Attributes:
        models: that have to.
        plan: of the run.
        lacking: models and ids of samples.
        tries: of each, so far.
    """

    models: list[str] = field(compare=False)
    plan: registry_entry.Plan = field(compare=False)
    lacking: Collection[object] = ()
    tries: object = None


def _missing(
    settings: AuditSettings, folder: str, again: str, money: AuditMoney | None
) -> _Missing | Standing:
    """Record what the logs answer; what is still missing then, or what the audit waits for."""
    plan = registry_entry.Plan(again, money=money)
    if not AuditStore.exists(settings.store):
        return _Missing(list(settings.models), plan)
    with AuditStore.open(settings.store) as there:
        items = there.design.items
    with AuditStore.open(settings.store, settings.design(items)) as store:
        found = read_answers(folder, store, settings.judge, _tariff(settings, money))
        require_bounds(store, found)
        keep_all(store, found)
        while True:
            _note_price(store, found)
            run = AuditRun(store)
            contexts = run.contexts
            if not contexts:
                return weigh(store)
            open_ = []
            for context in contexts:
                known = [found.get((settings.models[m], items[context.item])) for m in context.models]
                settled = [each for each in known if each is not None and each.settled(context.judged)]
                if len(settled) < len(known):
                    open_.append(context)
                    continue
                scores = [each.score for each in settled] if context.judged else None
                run.record(context, [each.answer for each in settled], scores)
            if open_:
                break
        wanted = {(settings.models[m], items[c.item], c.judged) for c in open_ for m in c.models}
    lacking = {(m, i) for m, i, judged in wanted if (m, i) not in found or not found[(m, i)].settled(judged)}
    answered = {
        model: frozenset(i for m, i, _ in wanted if m == model and (m, i) not in lacking)
        for model in settings.models
    }
    tries = {key: found[key].failures for key in lacking if key in found}
    kept = {key: sample for key in tries if (sample := found[key].kept) is not None}
    return _Missing(
        [model for model in settings.models if any(m == model for m, _ in lacking)],
        replace(plan, answered=answered, kept=kept),
        frozenset(lacking),
        frozenset(tries.items()),
    )


def _tariff(settings: AuditSettings, money: AuditMoney | None) -> Tariff | None:
    """By which to learn what a score costs; None where labels are priced in scores."""
    return money.tariff if money is not None and settings.in_dollars else None


def _note_price(store: AuditStore, found: Mapping[tuple[str, str], Found]) -> None:
    """Keep what a score of the judge cost until now: the next batch is chosen by it."""
    costs = [each.judging for each in found.values() if each.judging is not None]
    if costs and any(costs):
        store.judge_prices.note(math.fsum(costs) / len(costs))


def _label(settings: AuditSettings, folder: str, parsed: Mapping[str, Any], money: AuditMoney | None) -> str:
    """Have the scorer label what is wanted; why not, if it is asked nothing more."""
    if settings.labels_from is None:
        return ""
    spec, args = _task(parsed)
    with AuditStore.open(settings.store) as store, nullcontext() if money is None else money.opened() as pays:
        found = read_answers(folder, store, settings.judge)
        return label_by_scorer(store, found, spec, args, settings.labels_from, pays)


def _task(parsed: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    specs = [spec for given in parsed["tasks"] or ["."] for spec in named_tasks(given)]
    if len(specs) != 1:
        raise InvalidInputError("an audit is of one task; name it: my_task.py@name")
    return specs[0], parse_cli_config(parsed.get("t") or (), parsed.get("task_config"))


def _check_judge(settings: AuditSettings, parsed: Mapping[str, Any]) -> None:
    """Refuse a store that was begun with another judge, also where nothing is asked of it now.

    Raises:
        EvalbudgetError: it is another one, or the task has no such scorer.
    """
    with AuditStore.open(settings.store) as store:
        begun, items = store.design.judge, store.design.items
    if begun is None or not settings.policy.asks_judge:
        return
    _, found = _prepared(settings, parsed)
    # roles may be given in ways that only a run knows, which looks again
    roles_then = {name: value for name, value in begun.items() if name.startswith("model of role ")}
    known = roles_then | dict(found.design.judge or {})
    AuditStore.open(settings.store, settings.design(items, known)).close()


def _prepared(settings: AuditSettings, parsed: Mapping[str, Any]) -> tuple[Task, registry_entry.Prepared]:
    """The task, and what the audit makes of it, outside of any run."""
    task = load_alone(*_task(parsed), settings.models[0])
    typed = parse_cli_args(parsed.get("model_role") or (), force_str=False)
    return task, registry_entry.prepared(task, settings, typed)


def _run(
    command: click.Command,
    args: Sequence[str],
    given: Mapping[str, Any],
    models: Sequence[str],
    everyone: Sequence[str],
) -> int:
    arguments = {**given, "models": list(everyone)}
    rewritten = host_arguments(command, [*args, "--model", ",".join(models)], arguments, [ENTRY])
    if len(rewritten) != 1:
        raise InvalidInputError("an audit is of one task; name it: my_task.py@name")
    return run_ours(["eval", *rewritten[0]])


def _foreseen(
    settings: AuditSettings, budget: AuditBudget | None, parsed: Mapping[str, Any]
) -> AuditForecast:
    """What the audit would ask next; the task is loaded and adapted, models are not."""
    task, found = _prepared(settings, parsed)
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
