"""``evalbudget inspect eval`` and ``eval-set``: what the sampler is for, by default repeats."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import click

from evalbudget.audits.flags import FLAGS as AUDITS
from evalbudget.budget import Budget, Unit, shown_amount
from evalbudget.cli import say
from evalbudget.cli.flags import options_of
from evalbudget.errors import BudgetError, InvalidInputError
from evalbudget.exit_codes import codes_for_help, most_urgent
from evalbudget.flags import DRY_RUN, JSON, SAMPLER_OPTION, sampler_options
from evalbudget.judges.flags import FLAGS as JUDGES
from evalbudget.races.flags import BATCH
from evalbudget.races.flags import FLAGS as RACES
from evalbudget.repeats.flags import CLUSTER, REPEAT
from evalbudget.until import parse_until
from evalbudget_inspect.cli.shared import PASSED_ON, refuse_misplaced
from evalbudget_inspect.repeats.flags import FLAGS

_EXAMPLES = """\b
Examples:
  evalbudget inspect {name} my_task.py --model openai/gpt-5 --budget 2000
  evalbudget inspect {name} my_task.py@one --model a,b --sampler uniform --budget 20x
  evalbudget inspect {name} my_task.py --model m --budget 500 --repeat judge \\
      --score model_graded_qa --max-samples 20 -T difficulty=hard
  evalbudget inspect {name} my_task.py --model m \\
      --judges openai/gpt-5,anthropic/claude-opus-4,google/gemini-3-pro
  evalbudget inspect {name} my_task.py --model a,b,c --sampler pulse --budget 5000

Every other flag is inspect's own: see inspect {name} --help.

""" + codes_for_help(no="", undecided="not known yet, with --until")


def budgeted_command(name: str) -> click.Command:
    """The host's command of that name, under a budget."""

    @click.command(
        name=name,
        context_settings=PASSED_ON,
        epilog=_EXAMPLES.format(name=name),
        help=f"inspect {name} under a budget: a sampler decides how often each item is asked.",
    )
    @options_of((FLAGS[0], DRY_RUN, *FLAGS[1:]))
    @click.argument("args", nargs=-1, type=click.UNPROCESSED, metavar="[TASK] [INSPECT'S FLAGS]...")
    def command(args: tuple[str, ...], **given: Any) -> None:
        sys.exit(_run(name, args, **given))

    return command


def _run(name: str, args: Sequence[str], **given: Any) -> int:
    from evalbudget_inspect.host.private import init_dotenv
    from evalbudget_inspect.host.run_host import run_host

    init_dotenv()  # models and log folder may stand in .env: known to us as they will be to inspect
    refuse_misplaced(
        args,
        FLAGS,
        (RACES, f"is for races; use evalbudget inspect race in the place of {name}"),
        (AUDITS, f"is for audits; use evalbudget inspect audit STORE in the place of {name}"),
        command=name,
    )
    options = sampler_options(given.pop("sampler_options"), FLAGS)
    typed = {name: value for name, value in given.items() if value is not None and value is not False}
    ours = {**typed, **options}
    if not ours:
        return run_host([name, *args])
    if set(ours) == {DRY_RUN.name}:
        raise BudgetError("--dry-run says what a budget would buy; add --budget")
    if (JSON.option, "-") in pairwise(args):
        raise InvalidInputError(
            f"{JSON.option} is a flag of inspect {name} and takes no file; what a run found is in its log: "
            f"evalbudget report LOG {JSON.option} -"
        )
    other = _of_another_kind(name, args, given["sampler"], ours)
    return _repeat(name, args, ours) if other is None else other


def _of_another_kind(name: str, args: Sequence[str], sampler: str | None, ours: dict[str, Any]) -> int | None:
    """What a sampler does that repeats nothing; None if it repeats items."""
    from evalbudget.hooks import plugins

    what = "repeats" if sampler is None else plugins().question(sampler)
    if what == "repeats" and "until" in ours and not parse_until(ours["until"]).of_items:
        what = "races"  # of one model, or of each: means are known by items, not by repeats
    if what == "repeats":
        return None
    for flag in (REPEAT, CLUSTER, *JUDGES):
        if flag.name in ours:
            raise InvalidInputError(
                f"{flag.option} is for repeats of one model's items, not for {what}; drop it"
            )
    for flag in (BATCH, JSON):
        if any(arg.partition("=")[0] == flag.option for arg in args):
            raise InvalidInputError(
                f"{flag.option} would go to inspect {name}, which has a flag of that name; with the meaning "
                f"it has in {what} it belongs to evalbudget inspect {what[:-1]} (here it is "
                "--sampler-option batch=N)"
            )
    dry = bool(ours.pop(DRY_RUN.name, False))
    if what == "races":
        from evalbudget_inspect.races.command import run_race

        return run_race(name, args, ours, dry_run=dry)
    from evalbudget_inspect.audits.command import run_audit_beside_logs

    return run_audit_beside_logs(name, args, ours, dry_run=dry)


def _repeat(name: str, args: Sequence[str], ours: dict[str, Any]) -> int:
    from evalbudget.repeats import DEFAULT_SAMPLER_OF_PANELS
    from evalbudget_inspect.host.entries import whole_paths
    from evalbudget_inspect.host.private import host_cli
    from evalbudget_inspect.host.rewrite import host_arguments, parse, refuse_range, tasks_among
    from evalbudget_inspect.host.run_host import run_ours
    from evalbudget_inspect.judges.judge_names import judges_argument, read_judges
    from evalbudget_inspect.repeats.config import Config
    from evalbudget_inspect.repeats.shared_budget import parts_of

    if "judges" in ours:
        ours = {**ours, "judges": judges_argument(read_judges(ours["judges"]))}
    if "budget" not in ours and not (
        "judges" in ours and ours.get("sampler") in (None, DEFAULT_SAMPLER_OF_PANELS)
    ):
        own = {flag.name: flag.option for flag in FLAGS}
        said = own.get(next(iter(ours)), SAMPLER_OPTION.option)
        raise BudgetError(
            f"{said} needs a --budget; write a number of scores (2000) or scores per item (20x)"
        )
    ours = whole_paths(ours)
    dry = ours.pop(DRY_RUN.name, False)
    config = Config.of(**{"budget": None, **ours})  # refuse bad values before inspect starts
    command = host_cli.commands[name]
    parsed = parse(command, args)
    refuse_range(parsed)
    models = _models(parsed)
    specs = [] if "--help" in args else tasks_among(parsed["tasks"])
    several = len(specs) * len(models) > 1
    if several and config.store is not None:
        raise InvalidInputError(
            "processes that share a budget (--store) run one task with one model; start a command for each, "
            "with a store of its own"
        )
    parts = parts_of(config, specs, models, parsed) if several else None
    if (dry and "--help" not in args) or len(specs) > 1:
        from evalbudget_inspect.repeats.dry_run import forecasts

        found = forecasts(ours, specs, models, parsed, parts)  # what one run refuses is known before any pays
        if dry:
            if parts is not None:
                say(f"evalbudget: {_shared(parts, len(models))}\n")
            say("\n\n".join(map(str, found)))
            return 0
    runs = host_arguments(command, args, ours, budgets=parts)
    if parts is not None:
        say(f"evalbudget: {_shared(parts, len(models))}", err=True)
    elif several and config.budget is not None:
        say(f"evalbudget: {_of_each(config.budget, len(specs), len(models))}", err=True)
    return most_urgent([run_ours([name, *rewritten], config.until) for rewritten in runs])


def _models(parsed: Mapping[str, Any]) -> list[str]:
    """That every task runs with; of those named and those specified the host takes what was typed.

    Where both are there, one of them in the environment, the more are counted: then each may spend less.
    """
    named = [model.strip() for model in str(parsed.get("model") or "").split(",") if model.strip()]
    specified = ["none"] * len(parsed.get("model_spec") or ())
    return max(named or ["none"], specified, key=len)


def _shared(parts: Mapping[str, int | str], models: int) -> str:
    """What each run gets of a total: ``one 40, two 20, for each of 2 models: 120 scores in all``."""
    budgets = {spec: Budget.parse(part) for spec, part in parts.items()}
    unit = next(iter(budgets.values())).unit
    shown = {
        spec: f"{part.amount:,.0f}" if unit is Unit.SCORES else str(part) for spec, part in budgets.items()
    }
    each = ", ".join(f"{spec.rpartition('@')[2]} {part}" for spec, part in shown.items())
    among = f", for each of {models} models" if models > 1 else ""
    total = shown_amount(models * sum(part.amount for part in budgets.values()), unit)
    return f"one budget for all runs: {each}{among}; {total} in all"


def _of_each(budget: str | int, tasks: int, models: int) -> str:
    """What several runs have whose budget is by item: ``4 runs (2 tasks x 2 models) of 20x each``."""
    runs = f"{tasks * models} runs ({tasks} task{'s' * (tasks > 1)} x {models} model{'s' * (models > 1)})"
    return f"{runs} of {budget} each"
